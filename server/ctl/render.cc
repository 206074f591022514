// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/render.h"

#include <absl/strings/str_replace.h>

#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

constexpr char kApiVersion[] = "flagos/v1";

// The row with the chosen columns' fields only; whole where none were chosen.
Json Narrow(const Json& row, const std::vector<Column>& columns, const View& view) {
  if (view.fields.empty()) return row;
  Json narrow = Json::object();
  for (const Column& column : columns) {
    for (const std::string_view field : column.fields) {
      const Json::json_pointer place("/" + absl::StrReplaceAll(std::string(field), {{".", "/"}}));
      narrow[place] = FindField(row, field);
    }
  }
  return narrow;
}

std::string Document(const Json& document, const View& view) {
  return view.format == Format::kYaml ? RenderYaml(document) : RenderJson(document, view.one_line);
}

}  // namespace

absl::StatusOr<std::string> RenderList(Listing listing, const View& view) {
  const Schema& schema = *listing.schema;
  const auto columns = SelectColumns(schema, view);
  if (!columns.ok()) return columns.status();
  if (const absl::Status sorted = SortRows(listing, view); !sorted.ok()) return sorted;
  if (view.format == Format::kCsv) return RenderCsv(schema, *columns, listing.rows, view);
  if (view.format == Format::kTable || view.format == Format::kWide) {
    return RenderTable(schema, *columns, listing.rows, view);
  }
  Json document = {{"apiVersion", kApiVersion}, {"kind", std::string(schema.kind) + "List"}, {"items", Json::array()}};
  for (const Json& row : listing.rows) document["items"].push_back(Narrow(row, *columns, view));
  return Document(document, view);
}

absl::StatusOr<std::string> RenderItem(const Schema& schema, const Json& row, const View& view) {
  const auto columns = SelectColumns(schema, view);
  if (!columns.ok()) return columns.status();
  if (view.format == Format::kCsv) return RenderCsv(schema, *columns, {row}, view);
  const Json narrow = Narrow(row, *columns, view);
  if (view.format == Format::kTable || view.format == Format::kWide) return RenderDetails(schema, narrow, view);
  Json document = {{"apiVersion", kApiVersion}, {"kind", schema.kind}};
  document.update(narrow);
  return Document(document, view);
}

std::string RenderJson(const Json& document, bool one_line) {
  return document.dump(one_line ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace flagos::ctl
