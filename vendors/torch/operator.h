// SPDX-License-Identifier: Apache-2.0
// Operators of the hosted libtorch, as calls need them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKey.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/wire/definitions.h"
#include "vendors/torch/kernel_routes.h"

namespace flagos::torch_host {

struct Operator {
  c10::OperatorHandle handle;
  std::string name;                         // "aten::add.Tensor"
  std::vector<ReturnKind> returns;          // as the client defined them
  std::vector<bool> written;                // per argument: the call writes it
  std::vector<bool> resizable;              // per argument: an out= tensor, which the call may resize
  bool dynamic = false;                     // results' geometry depends on data: every call is new
  bool draws_unasked = false;               // draws random numbers without a Generator argument
  bool keeps_tensors = false;               // never gives the tensors that it is given another shape, nor keeps them
  bool asks_for_gradients = false;          // saves what its gradient needs only where an argument requires one
  bool moves_bytes = false;                 // copies without looking at the values: may work on shared memory in place
  std::shared_ptr<KernelRoute> route = {};  // of a kernel library that was chosen for it; null: none was
};

// Whether a client may call the operator at all; others are as if they were not there.
bool IsAllowed(const c10::OperatorName& name);

// Finds the operator by name and overload and compares the counts.
Result<Operator> FindOperator(const OperatorDefinition& definition, c10::DispatchKey key);

// What FindOperator would find, for a name as "aten::add.Tensor".
bool HasOperator(const std::string& name, c10::DispatchKey key);

// What a client should forward: operators with a kernel of the device's own, without those that a client does by itself
// (views, metadata, empty factories), and the multi-tensor operators, which save calls where they are composite too.
std::vector<std::string> ListOperators(c10::DispatchKey key);

}  // namespace flagos::torch_host
