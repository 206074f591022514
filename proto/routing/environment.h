// SPDX-License-Identifier: Apache-2.0
// Routes in environment variables: FLAGOS_OP_sum=accurate, FLAGOS_OP_add__Tensor=native. A name has "__" where the
// operator has "." or "::", which no shell takes in a variable.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "proto/routing/route.h"
#include "proto/wire/error.h"

namespace flagos {

inline constexpr const char* kRouteVariable = "FLAGOS_OP_";

// Whether there is such a variable in `environment` (as environ). An empty one is as if it were not there.
bool HasRouteVariables(const char* const* environment);

// Their routes, those of one overload behind those of all, so that the last one holds. `known` are the full names of
// all operators: an underscore may belong to a name, so variables are told by the names that there are. An error names
// the variable, what is wrong, and what to do.
Result<std::vector<Route>> RoutesOfVariables(const char* const* environment, std::span<const std::string> known);

}  // namespace flagos
