// SPDX-License-Identifier: Apache-2.0
// Whether routes lead somewhere: said when they are read, because a route that is ignored is worse than none.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "proto/routing/route.h"
#include "proto/wire/error.h"

namespace flagos {

// What there is to route.
struct RoutingGround {
  std::span<const std::string> operators;                // all of PyTorch's, by full name
  std::function<bool(const std::string& full)> offered;  // whether calls of one reach a device
  std::span<const KernelLibraryInfo> libraries;
};

// An error, with the route's origin, where a route names a library that is not there or cannot be used, an operator
// that PyTorch has not, or one that no library may run or that never reaches a device. What is returned are texts about
// routes to libraries that have no kernel for the operator: its calls run on the vendor's own.
Result<std::vector<std::string>> CheckRoutes(std::span<const Route> routes, const RoutingGround& ground);

// What CheckRoutes() says of a library that no list has, and of an operator that may not be routed; for who chooses one
// by one.
Error NoSuchLibrary(const std::string& origin, const std::string& library,
                    std::span<const KernelLibraryInfo> libraries);
Error NeverRouted(const std::string& origin, const std::string& op);

}  // namespace flagos
