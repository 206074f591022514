// SPDX-License-Identifier: Apache-2.0
#include "proto/routing/environment.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace flagos {
namespace {

struct Variable {
  std::string_view suffix, value;
};

std::vector<Variable> RouteVariables(const char* const* environment) {
  constexpr std::string_view kPrefix = kRouteVariable;
  std::vector<Variable> variables;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view text(*environment);
    const size_t sign = text.find('=');
    if (!text.starts_with(kPrefix) || sign == std::string_view::npos || sign + 1 == text.size()) continue;
    variables.push_back({text.substr(kPrefix.size(), sign - kPrefix.size()), text.substr(sign + 1)});
  }
  return variables;
}

std::string Spelled(std::string_view name) {
  std::string spelled;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '.' && name[i] != ':') {
      spelled += name[i];
      continue;
    }
    spelled += "__";
    if (name[i] == ':') ++i;
  }
  return spelled;
}

// Every way to write an operator that there is, in a variable's name, and what it means.
std::unordered_map<std::string, Route> Spellings(std::span<const std::string> known) {
  std::unordered_map<std::string, Route> spellings;
  const auto add = [&](const Route& route) {
    const std::string name = OperatorText(route);
    spellings.try_emplace(Spelled(name), route);
    if (name.starts_with("aten::")) spellings.try_emplace(Spelled(name.substr(6)), route);
  };
  for (const std::string& full : known) {
    const OperatorParts parts = SplitOperator(full);
    add({std::string(parts.op), std::nullopt, {}, {}});
    add({std::string(parts.op), std::string(parts.overload), {}, {}});
  }
  return spellings;
}

}  // namespace

bool HasRouteVariables(const char* const* environment) { return !RouteVariables(environment).empty(); }

Result<std::vector<Route>> RoutesOfVariables(const char* const* environment, std::span<const std::string> known) {
  const std::vector<Variable> variables = RouteVariables(environment);
  std::vector<Route> routes;
  if (variables.empty()) return routes;
  const auto spellings = Spellings(known);
  for (const auto& [suffix, value] : variables) {
    const std::string name = kRouteVariable + std::string(suffix);
    const auto found = spellings.find(std::string(suffix));
    if (found == spellings.end()) {
      return MakeError(ErrorCode::kValue, "the variable " + name +
                                              " names no operator of this PyTorch; write \"__\" for each dot, as " +
                                              kRouteVariable +
                                              "add__Tensor, and load the library of a custom operator before the "
                                              "device is first used");
    }
    if (!IsLibraryName(value)) {
      return MakeError(ErrorCode::kValue, "the variable " + name +
                                              " does not hold the name of a kernel library; set it to one that "
                                              "torch.flagos.kernel_libraries() lists, or to native");
    }
    Route& route = routes.emplace_back(found->second);
    route.library = value;
    route.origin = "the variable " + name;
  }
  std::stable_partition(routes.begin(), routes.end(), [](const Route& route) { return !route.overload.has_value(); });
  return routes;
}

}  // namespace flagos
