// SPDX-License-Identifier: Apache-2.0
// The arguments of one running call, then its results.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/MaybeOwned.h>

#include <utility>
#include <vector>

#include "vendors/torch/prepared_call.h"

namespace flagos::torch_host {

// A sparse argument of the running call. What it writes gets storages of its own over the same bytes: a kernel that
// resizes one does not resize what others use.
struct SparseArgument {
  const PreparedSparse* prepared;
  std::vector<at::Tensor> components;
  std::vector<c10::Storage> originals;  // of the components
  at::Tensor tensor;                    // made when the call runs
};

struct CallFrame {
  torch::jit::Stack stack;
  std::vector<std::pair<uint32_t, c10::Storage>> shadows;  // by handle, where storages must not be resized in place
  std::vector<at::Tensor> resizable;                       // the tensors that PreparedCall::resizable numbers
  std::vector<c10::MaybeOwned<at::Tensor>> written;        // those of PreparedCall::written
  std::vector<SparseArgument> sparse;                      // in the order of PreparedCall::sparse

  void clear() {
    stack.clear();
    shadows.clear();
    resizable.clear();
    written.clear();
    sparse.clear();
  }
};

// Runs the operator on the frame's stack, in the calling thread, below autograd. Throws what the kernel throws.
void RunKernel(const PreparedCall& call, CallFrame& frame, c10::DispatchKey key);

}  // namespace flagos::torch_host
