// SPDX-License-Identifier: Apache-2.0
// Which kernel library the user chose for each operator: the file that FLAGOS_BACKEND_CONFIG names, and variables
// FLAGOS_OP_*, which win over it.
#pragma once

#include <string>

#include "client/session.h"
#include "proto/routing/route_table.h"

namespace flagos::client {

class Routing {
 public:
  // As files and environment are at the first call in a process. Where they do not tell, this and every later call
  // throw the same ValueError. Thread safe.
  static const Routing& Get();

  // For the definition of an operator, "aten::sum.dim_IntList": a library, kNativeKernels, or empty: flagosd decides.
  std::string library_of(const std::string& op) const;

  // Asks the session's executor, and throws where it has not what was chosen; says on standard error where a library
  // has no kernel for an operator. Asks nothing where nothing was chosen. REQUIRES that operators are registered.
  void check(Session& session) const;

 private:
  Routing();

  RouteTable table_;
};

}  // namespace flagos::client
