// SPDX-License-Identifier: Apache-2.0
#include "proto/routing/route.h"

#include <algorithm>
#include <array>

namespace flagos {
namespace {

constexpr std::array<std::string_view, 56> kNeverRouted = {
    // Bare storages.
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "_efficientzerotensor",
    "_pin_memory", "is_pinned", "record_stream", "resize_", "resize_as_", "set_", "set_data", "is_set_to",
    // Copies.
    "copy", "copy_", "_copy_from", "_copy_from_and_resize", "_foreach_copy_", "_to_copy", "_local_scalar_dense", "to",
    "clone", "item",
    // Views.
    "alias", "as_strided", "_conj", "detach", "diagonal", "expand", "_neg_view", "_nested_view_from_buffer", "permute",
    "_reshape_alias", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold",
    "unsqueeze", "_unsafe_view", "view", "view_as", "view_as_complex", "view_as_real", "reshape", "movedim", "narrow",
    "flatten", "expand_as", "chunk"};

bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

std::optional<Route> ParseOperator(std::string_view text) {
  Route route;
  const size_t colons = text.find("::");
  const std::string_view space = colons == std::string_view::npos ? "aten" : text.substr(0, colons);
  std::string_view rest = colons == std::string_view::npos ? text : text.substr(colons + 2);
  if (const size_t dot = rest.find('.'); dot != std::string_view::npos) {
    const std::string_view overload = rest.substr(dot + 1);
    if (!IsWord(overload)) return std::nullopt;
    route.overload = overload == "default" ? std::string() : std::string(overload);
    rest = rest.substr(0, dot);
  }
  if (!IsWord(space) || !IsWord(rest)) return std::nullopt;
  route.op = std::string(space) + "::" + std::string(rest);
  return route;
}

std::string OperatorText(const Route& route) {
  if (!route.overload) return route.op;
  return route.op + "." + (route.overload->empty() ? "default" : *route.overload);
}

OperatorParts SplitOperator(std::string_view full) {
  const size_t colons = full.find("::");
  const size_t dot = full.find('.', colons == std::string_view::npos ? 0 : colons);
  if (dot == std::string_view::npos) return {full, {}};
  return {full.substr(0, dot), full.substr(dot + 1)};
}

bool IsNeverRouted(std::string_view op) {
  constexpr std::string_view kSpace = "aten::";
  return op.starts_with(kSpace) && std::ranges::find(kNeverRouted, op.substr(kSpace.size())) != kNeverRouted.end();
}

}  // namespace flagos
