// SPDX-License-Identifier: Apache-2.0
// Sparse tensors of a call's outcome.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "client/forward/call_buffer.h"
#include "client/forward/result_handles.h"

namespace flagos::client {

// Whether the outputs from `first` on are the call's sparse arguments as it may have left them.
bool FitsWrittenSparse(const CallBuffer& buffer, const Outcome& outcome, size_t first);

// A result that is sparse. REQUIRES Fits(); throws where its components do not fit each other.
at::Tensor MakeSparseResult(const CallBuffer& buffer, const Output& output, ResultHandles& handles);

// The sparse arguments that a call writes. They and the components of all are kept while the call's results take the
// place of its arguments on the stack.
class WrittenSparse {
 public:
  explicit WrittenSparse(const CallBuffer& buffer);
  // Gives the arguments what they hold after the call. REQUIRES Fits() and that the results proper were made.
  void update(const CallBuffer& buffer, const Outcome& outcome, ResultHandles& handles) const;

 private:
  std::vector<at::Tensor> kept_;
};

}  // namespace flagos::client
