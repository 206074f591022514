// SPDX-License-Identifier: Apache-2.0
// A route: which kernel library runs the calls of an operator. Client and executor share what is here: the client reads
// the routes of its user, the executor those of flagosd's configuration.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proto/wire/kernels.h"

namespace flagos {

struct Route {
  std::string op;                       // "aten::sum"
  std::optional<std::string> overload;  // "" is the one without a name; none: every overload
  std::string library;                  // or kNativeKernels
  std::string origin;                   // where it was said, for messages: "/etc/routes.conf:3"
};

// An operator as a user writes it: "sum", "aten::sum", "sum.dim_IntList", and "sum.default" for the overload without a
// name. Only `op` and `overload` are filled. None where it cannot be an operator's name.
std::optional<Route> ParseOperator(std::string_view text);

// The operator as ParseOperator() reads it.
std::string OperatorText(const Route& route);

// The parts of a full name as the wire has it, "aten::sum.dim_IntList".
struct OperatorParts {
  std::string_view op;
  std::string_view overload;
};
OperatorParts SplitOperator(std::string_view full);

// Whether no library may run the operator (a name without overload): what makes bare storages, makes tensors over
// storages that there are, or moves bytes. The client computes most of these, and the rest know the session's memory.
bool IsNeverRouted(std::string_view op);

}  // namespace flagos
