// SPDX-License-Identifier: Apache-2.0
#include "proto/routing/route_table.h"

#include <algorithm>
#include <utility>

namespace flagos {

RouteTable::RouteTable(std::vector<Route> routes) : routes_(std::move(routes)) {
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    last_[route.overload ? route.op + "." + *route.overload : route.op] = i;
  }
}

const Route* RouteTable::find(std::string_view full) const {
  const OperatorParts parts = SplitOperator(full);
  const std::string op(parts.op);
  const auto all = last_.find(op);
  const auto one = last_.find(op + "." + std::string(parts.overload));
  if (all == last_.end() && one == last_.end()) return nullptr;
  if (all == last_.end()) return &routes_[one->second];
  if (one == last_.end()) return &routes_[all->second];
  return &routes_[std::max(all->second, one->second)];
}

}  // namespace flagos
