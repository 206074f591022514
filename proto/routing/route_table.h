// SPDX-License-Identifier: Apache-2.0
// Which route holds for an operator.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proto/routing/route.h"

namespace flagos {

// Constant after construction.
class RouteTable {
 public:
  RouteTable() = default;
  // Of routes that speak of an operator, by its overload or by all overloads, the last one holds.
  explicit RouteTable(std::vector<Route> routes);

  // The route of a full name, "aten::sum.dim_IntList"; null where there is none.
  const Route* find(std::string_view full) const;
  bool empty() const { return routes_.empty(); }
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
  std::unordered_map<std::string, size_t> last_;  // by "aten::sum.dim_IntList", "aten::sum." or, for all, "aten::sum"
};

}  // namespace flagos
