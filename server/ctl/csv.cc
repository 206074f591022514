// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include "server/ctl/render.h"

namespace flagos::ctl {
namespace {

std::string Quoted(std::string text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Value(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return Quoted(value.get<std::string>());
  if (value.is_array()) {
    return Quoted(absl::StrJoin(value, " ", [](std::string* out, const Json& item) {
      out->append(item.is_string() ? item.get<std::string>() : item.dump());
    }));
  }
  return Quoted(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string Title(std::string_view field, Unit unit) {
  switch (unit) {
    case Unit::kBytes: return std::string(field) + (field.ends_with("_bytes") ? "" : "_bytes");
    case Unit::kSeconds: return std::string(field) + "_seconds";
    case Unit::kRatio: return std::string(field) + (field.ends_with("_ratio") ? "" : "_ratio");
    case Unit::kCelsius: return std::string(field) + "_celsius";
    case Unit::kWatts: return std::string(field) + "_watts";
    case Unit::kMegahertz: return std::string(field) + "_mhz";
    case Unit::kText:
    case Unit::kCount: break;
  }
  return std::string(field);
}

}  // namespace

std::string RenderCsv(const Schema& schema, const std::vector<Column>& columns, const std::vector<Json>& rows,
                      const View& view) {
  std::vector<std::string> fields;
  for (const Column& column : columns) fields.insert(fields.end(), column.fields.begin(), column.fields.end());

  std::string out;
  if (view.headers) {
    out += absl::StrJoin(
               fields, ",",
               [&](std::string* to, const std::string& field) { to->append(Title(field, schema.unit(field))); }) +
           "\r\n";
  }
  for (const Json& row : rows) {
    out += absl::StrJoin(fields, ",",
                         [&](std::string* to, const std::string& field) { to->append(Value(FindField(row, field))); }) +
           "\r\n";
  }
  return out;
}

}  // namespace flagos::ctl
