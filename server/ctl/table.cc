// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_replace.h>

#include <algorithm>

#include "server/ctl/render.h"

namespace flagos::ctl {
namespace {

constexpr size_t kGap = 2;

std::string Cell(const Schema& schema, const Column& column, const Json& row, const View& view) {
  std::string text;
  for (const std::string_view name : column.fields) {
    const auto found = row.find(std::string(name));
    const Unit unit = schema.unit(name);
    Json value = found == row.end() ? Json() : *found;
    // The second of two is a limit: 0 says that there is none.
    if (!text.empty()) {
      text += '/';
      if (value == 0) value = Json();
    }
    text += FormatValue(value, unit, view.units);
  }
  return text;
}

bool IsNumber(const Schema& schema, const Column& column) { return schema.unit(column.fields.front()) != Unit::kText; }

}  // namespace

std::string RenderTable(const Schema& schema, const std::vector<Column>& columns, const std::vector<Json>& rows,
                        const View& view) {
  std::vector<std::vector<std::string>> lines;
  if (view.headers) {
    auto& titles = lines.emplace_back();
    for (const Column& column : columns) titles.emplace_back(column.title);
  }
  for (const Json& row : rows) {
    auto& cells = lines.emplace_back();
    for (const Column& column : columns) cells.push_back(Cell(schema, column, row, view));
  }
  std::vector<size_t> widths;
  widths.reserve(columns.size());
  for (const Column& column : columns) widths.push_back(column.min_width);
  for (const auto& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(cells[i]));
  }
  std::string out;
  for (const auto& cells : lines) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(cells[i]), ' ');
      if (i != 0) line.append(kGap, ' ');
      line += IsNumber(schema, columns[i]) ? padding + cells[i] : cells[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string RenderDetails(const Schema& schema, const Json& row, const View& view) {
  size_t width = 0;
  for (const auto& [name, value] : row.items()) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, value] : row.items()) {
    const std::string title = absl::StrReplaceAll(name, {{"_", " "}});
    out += title + std::string(width - title.size() + kGap, ' ') + FormatValue(value, schema.unit(name), view.units) +
           "\n";
  }
  return out;
}

}  // namespace flagos::ctl
