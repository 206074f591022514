// SPDX-License-Identifier: Apache-2.0
// What runs for an operator that has no kernel on the device, or none for sparse tensors on it.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace flagos::client {

// Attaches where that has not been done yet, and calls the operator again if it is known by then. Else asks the
// executor once whether it has it (a custom operator), and forwards it from then on; or raises NotImplementedError.
void Fallback(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// For kinds of tensors that the device does not have: raises NotImplementedError with the key.
void RefuseKey(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace flagos::client
