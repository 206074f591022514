// SPDX-License-Identifier: Apache-2.0
// Tensors of a call's outcome.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "client/forward/call_buffer.h"
#include "client/forward/operator.h"
#include "client/forward/result_handles.h"

namespace flagos::client {

// Whether the outcome is one that a call of this operator with these inputs can have; what an executor says is checked
// with it before it is believed.
bool Fits(const Operator& op, const CallBuffer& buffer, const Outcome& outcome);

// The tensor of a kTensor, kAlias or kSparse; undefined for others. REQUIRES Fits().
at::Tensor MakeTensor(const CallBuffer& buffer, const Output& output, ResultHandles& handles);

// Takes the call's arguments from the stack and puts its results there: new tensors on the handles, mutated arguments
// as they are. Gives resized arguments their new geometry. REQUIRES Fits().
void PutResults(const Operator& op, const CallBuffer& buffer, const Outcome& outcome, ResultHandles& handles,
                torch::jit::Stack& stack);

}  // namespace flagos::client
