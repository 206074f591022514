// SPDX-License-Identifier: Apache-2.0
// Sparse tensors in the executor: made of their components for one call, checked, and taken apart afterwards.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>

#include <vector>

#include "vendors/torch/call_frame.h"
#include "vendors/torch/prepared_call.h"

namespace flagos::torch_host {

// The key of sparse kernels beside a device's dense ones: SparseCPU, SparseCsrCPU, ...
c10::DispatchKey SparseKey(c10::DispatchKey dense, Layout layout);

// Null where the geometry of the components makes a tensor of that shape, else what is wrong.
const char* CheckComponents(const SparseShape& shape, const std::vector<Argument>& components);

// Puts the sparse arguments in their places on the stack and runs the operator. What indices say is checked as
// PyTorch's own constructors check it, at every call, for it is data: that costs one pass over the indices, as the
// kernel itself does. In the order and on the thread of the stream, for the components may be results of what was
// queued before. What another stream writes into them meanwhile is not guarded against: as in any process, that harms
// this session's own memory. Throws c10::Error where the indices are wrong, and c10::NotImplementedError where the
// operator has no such kernel.
void RunSparse(const PreparedCall& call, CallFrame& frame, c10::DispatchKey key);

// A sparse tensor taken apart; the layout of any other is kStrided, and it has no components.
struct SparseParts {
  SparseShape shape;
  std::vector<at::Tensor> components;
};
SparseParts TakeApart(const at::Tensor& tensor);

}  // namespace flagos::torch_host
