// SPDX-License-Identifier: Apache-2.0
// What a command answers: rows of named values in base units, and how they are shown.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/ctl/text.h"

namespace flagos::ctl {

using Json = nlohmann::ordered_json;

enum class Unit { kText, kCount, kBytes, kSeconds, kRatio, kCelsius, kWatts, kMegahertz };

// A value of a row, by its key in JSON, or by keys with dots between them where objects lie in objects. What is not
// listed in a schema is text.
struct Field {
  std::string_view name;
  Unit unit;
};

// The value that such a name names in a row; null where there is none.
const Json& FindField(const Json& row, std::string_view name);

// A column of a table. Two fields are shown as "used/quota".
struct Column {
  std::string_view title;
  std::vector<std::string_view> fields;
  bool wide = false;     // with -o wide only
  size_t min_width = 0;  // for rows that are printed one by one
};

// What a kind of thing looks like. Static data.
struct Schema {
  std::string_view kind;  // "Session"
  std::vector<Field> fields;
  std::vector<Column> columns;

  Unit unit(std::string_view field) const;
  // By its title, in any case, or by the name of its first field.
  const Column* find(std::string_view name) const;
};

struct Listing {
  const Schema* schema = nullptr;
  std::vector<Json> rows;
};

enum class Format { kTable, kWide, kJson, kYaml, kCsv };

struct View {
  Format format = Format::kTable;
  Units units = Units::kIec;
  bool headers = true;
  bool one_line = false;            // JSON without line breaks, for --watch
  std::vector<std::string> fields;  // columns to show; empty: the schema's choice
  std::string sort;                 // a column; "-name" for descending order; empty: as answered
};

// The columns that a view shows; an error names those that exist.
absl::StatusOr<std::vector<Column>> SelectColumns(const Schema& schema, const View& view);
// Orders the rows as the view says.
absl::Status SortRows(Listing& listing, const View& view);

// A value for people.
std::string FormatValue(const Json& value, Unit unit, Units units);

}  // namespace flagos::ctl
