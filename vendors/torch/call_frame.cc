// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/call_frame.h"

#include <ATen/ATen.h>

#include "vendors/torch/sparse.h"

namespace flagos::torch_host {
namespace {

// Kernels read some host values twice (an index is checked, then used): what a client could change in between is
// copied first. Copies of bytes need no such care and work on the shared memory itself.
void CopyHostTensors(const PreparedCall& call, torch::jit::Stack& stack) {
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Slot& slot = call.slots[i];
    for (uint32_t k = 0; k < slot.count; ++k) {
      if (!call.tensors[slot.first + k].copy) continue;
      if (slot.kind == Slot::Kind::kTensor) {
        stack[i] = stack[i].toTensor().clone();
      } else if (slot.kind == Slot::Kind::kTensorList) {
        auto list = stack[i].toTensorList();
        list.set(k, list.get(k).clone());
      } else {
        auto list = stack[i].toOptionalTensorList();
        list.set(k, list.get(k)->clone());
      }
    }
  }
}

void RunRouted(const PreparedCall& call, CallFrame& frame, c10::DispatchKey key) {
  call.route->calls.fetch_add(1, std::memory_order_relaxed);
  call.route->kernel->function.callBoxed(call.op->handle, c10::DispatchKeySet(key), &frame.stack);
}

}  // namespace

void RunKernel(const PreparedCall& call, CallFrame& frame, c10::DispatchKey key) {
  if (call.copies) CopyHostTensors(call, frame.stack);
  if (!call.direct) {
    if (!call.sparse.empty()) return RunSparse(call, frame, key);
    if (call.route != nullptr) return RunRouted(call, frame, key);
    call.op->handle.callBoxed(&frame.stack);
  } else {
    // All tensors are dense ones of the device, so the key is known and need not be gathered from them.
    call.op->handle.redispatchBoxed(c10::DispatchKeySet(key), &frame.stack);
  }
}

}  // namespace flagos::torch_host
