// SPDX-License-Identifier: Apache-2.0
// Renders answers as text. Pure functions: golden files in tests/unit hold their output.
#pragma once

#include <string>

#include "server/ctl/listing.h"

namespace flagos::ctl {

// Many rows: a table, CSV, or {"apiVersion", "kind": "SessionList", "items": [...]}.
absl::StatusOr<std::string> RenderList(Listing listing, const View& view);
// One row: "name: value" lines, CSV, or {"apiVersion", "kind": "Session", ...}.
absl::StatusOr<std::string> RenderItem(const Schema& schema, const Json& row, const View& view);

// The parts, one for each format.
std::string RenderTable(const Schema& schema, const std::vector<Column>& columns, const std::vector<Json>& rows,
                        const View& view);
std::string RenderDetails(const Schema& schema, const Json& row, const View& view);
// RFC 4180: base units, named in the header; lines end in CRLF.
std::string RenderCsv(const Schema& schema, const std::vector<Column>& columns, const std::vector<Json>& rows,
                      const View& view);
std::string RenderJson(const Json& document, bool one_line);
std::string RenderYaml(const Json& document);

}  // namespace flagos::ctl
