// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/render.h"

namespace flagos::ctl {
namespace {

// JSON's strings and numbers are YAML's too, so scalars are written as JSON: no text can be taken for something else.
std::string Scalar(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool IsBlock(const Json& value) { return value.is_structured() && !value.empty(); }

// Lines of a value, each behind `indent` spaces; the first line of an entry of a list stands behind "- ".
void Append(std::string& out, const Json& value, size_t indent, bool after_dash) {
  const std::string margin(indent, ' ');
  bool first = true;
  if (value.is_array()) {
    for (const Json& item : value) {
      out += margin + "-" + (IsBlock(item) ? "" : " " + Scalar(item) + "\n");
      if (IsBlock(item)) {
        out += item.is_object() ? " " : "\n";
        Append(out, item, indent + 2, item.is_object());
      }
    }
    return;
  }
  for (const auto& [name, item] : value.items()) {
    out += (first && after_dash ? "" : margin) + name + ":" + (IsBlock(item) ? "\n" : " " + Scalar(item) + "\n");
    if (IsBlock(item)) Append(out, item, indent + 2, false);
    first = false;
  }
}

}  // namespace

std::string RenderYaml(const Json& document) {
  std::string out;
  Append(out, document, 0, false);
  return out;
}

}  // namespace flagos::ctl
