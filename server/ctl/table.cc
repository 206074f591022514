// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_replace.h>

#include <algorithm>

#include "server/ctl/render.h"

namespace flagos::ctl {
namespace {

constexpr size_t kGap = 2;

std::string Cell(const Schema& schema, const Column& column, const Json& row, const View& view) {
  std::string text;
  const auto absent = [&](std::string_view name) { return FindField(row, name).is_null(); };
  if (std::ranges::all_of(column.fields, absent)) return FormatValue(Json(), Unit::kText, view.units);
  for (const std::string_view name : column.fields) {
    const Unit unit = schema.unit(name);
    Json value = FindField(row, name);
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

struct Detail {
  std::string title, text;
};

std::string TitleOf(const std::string& name) { return absl::StrReplaceAll(name, {{"_", " "}, {".", " "}}); }

// "pid 4711, memory 1.5GiB": an entry of a list of objects, whose fields begin with `prefix`.
std::string Entry(const Schema& schema, const Json& object, const std::string& prefix, const View& view) {
  std::string text;
  for (const auto& [name, value] : object.items()) {
    text +=
        (text.empty() ? "" : ", ") + TitleOf(name) + " " + FormatValue(value, schema.unit(prefix + name), view.units);
  }
  return text;
}

// A line for each value; objects are entered, and each object of a list has a line.
void AddDetails(const Schema& schema, const Json& object, const std::string& prefix, const View& view,
                std::vector<Detail>& details) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      AddDetails(schema, value, name + ".", view, details);
    } else if (value.is_array() && !value.empty() && value.front().is_object()) {
      for (const Json& entry : value) details.push_back({TitleOf(name), Entry(schema, entry, name + ".", view)});
    } else {
      details.push_back({TitleOf(name), FormatValue(value, schema.unit(name), view.units)});
    }
  }
}

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
  std::vector<Detail> details;
  AddDetails(schema, row, "", view, details);
  size_t width = 0;
  for (const Detail& detail : details) width = std::max(width, detail.title.size());
  std::string out;
  for (const Detail& detail : details) {
    out += detail.title + std::string(width - detail.title.size() + kGap, ' ') + detail.text + "\n";
  }
  return out;
}

}  // namespace flagos::ctl
