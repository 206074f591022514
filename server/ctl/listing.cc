// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/listing.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

bool EqualsIgnoringCase(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, absl::ascii_tolower, absl::ascii_tolower);
}

absl::Status UnknownColumn(const Schema& schema, std::string_view name) {
  const std::string known =
      absl::StrJoin(schema.columns, " ", [](std::string* out, const Column& column) { out->append(column.title); });
  return Failure(absl::StatusCode::kInvalidArgument, "there is no column \"" + std::string(name) + "\"",
                 "--fields and --sort take the titles of columns", absl::StrCat("choose from: ", known));
}

}  // namespace

const Json& FindField(const Json& row, std::string_view name) {
  static const Json kNone;
  const Json* at = &row;
  while (at->is_object()) {
    const size_t dot = name.find('.');
    const auto found = at->find(std::string(name.substr(0, dot)));
    if (found == at->end()) break;
    at = &*found;
    if (dot == std::string_view::npos) return *at;
    name.remove_prefix(dot + 1);
  }
  return kNone;
}

Unit Schema::unit(std::string_view field) const {
  const auto found = std::ranges::find(fields, field, &Field::name);
  return found == fields.end() ? Unit::kText : found->unit;
}

const Column* Schema::find(std::string_view name) const {
  for (const Column& column : columns) {
    if (EqualsIgnoringCase(column.title, name) || column.fields.front() == name) return &column;
  }
  return nullptr;
}

absl::StatusOr<std::vector<Column>> SelectColumns(const Schema& schema, const View& view) {
  std::vector<Column> chosen;
  for (const std::string& name : view.fields) {
    const Column* const column = schema.find(name);
    if (column == nullptr) return UnknownColumn(schema, name);
    chosen.push_back(*column);
  }
  if (!chosen.empty()) return chosen;
  for (const Column& column : schema.columns) {
    if (!column.wide || view.format != Format::kTable) chosen.push_back(column);
  }
  return chosen;
}

absl::Status SortRows(Listing& listing, const View& view) {
  if (view.sort.empty()) return absl::OkStatus();
  const bool descending = view.sort.front() == '-';
  const std::string_view name = std::string_view(view.sort).substr(descending ? 1 : 0);
  const Column* const column = listing.schema->find(name);
  if (column == nullptr) return UnknownColumn(*listing.schema, name);
  const std::string_view key = column->fields.front();
  const auto before = [&](const Json& left, const Json& right) {
    return descending ? FindField(right, key) < FindField(left, key) : FindField(left, key) < FindField(right, key);
  };
  std::ranges::stable_sort(listing.rows, before);
  return absl::OkStatus();
}

std::string FormatValue(const Json& value, Unit unit, Units units) {
  if (value.is_null()) return "-";
  if (value.is_array()) {
    if (value.empty()) return "-";
    return absl::StrJoin(value, ",",
                         [&](std::string* out, const Json& item) { out->append(FormatValue(item, unit, units)); });
  }
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text.empty() ? "-" : Printable(text);
  }
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_number()) return Printable(value.dump());
  switch (unit) {
    case Unit::kBytes: return FormatBytes(value.get<uint64_t>(), units);
    case Unit::kSeconds: return FormatSeconds(value.get<double>(), units);
    case Unit::kRatio: return FormatRatio(value.get<double>(), units);
    case Unit::kCelsius: return FormatFigure(value.get<double>(), "C", units);
    case Unit::kWatts: return FormatFigure(value.get<double>(), "W", units);
    case Unit::kMegahertz: return FormatFigure(value.get<double>(), "MHz", units);
    case Unit::kText:
    case Unit::kCount: break;
  }
  return value.dump();
}

}  // namespace flagos::ctl
