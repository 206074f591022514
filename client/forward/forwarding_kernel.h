// SPDX-License-Identifier: Apache-2.0
// The kernel of an operator that the executor runs.
#pragma once

#include <torch/library.h>

#include <atomic>
#include <memory>

#include "client/forward/call.h"
#include "client/session.h"

namespace flagos::client {

// One operator's kernel. Its plan is made at the first call: making them all takes longer than attaching may.
class ForwardingKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
    Operator* op = operator_.load(std::memory_order_acquire);
    if (op == nullptr) [[unlikely]]
      op = &plan(handle);
    Call(*op, *stack);
  }

 private:
  Operator& plan(const c10::OperatorHandle& handle) {
    Session::Get();  // raises the error of a forked child, where the lock taken next may be held for ever
    Operator& op = Operator::Of(handle);
    operator_.store(&op, std::memory_order_release);
    return op;
  }
  std::atomic<Operator*> operator_{nullptr};
};

// Forwards the operator `name` ("add.Tensor") of the library's namespace.
inline void Forward(torch::Library& library, const char* name) {
  library.impl(name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<ForwardingKernel>()));
}

}  // namespace flagos::client
