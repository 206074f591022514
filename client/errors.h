// SPDX-License-Identifier: Apache-2.0
// Errors of the wire as the C++ exceptions that PyTorch turns into Python's.
#pragma once

#include <cstdint>

#include "proto/wire/error.h"
#include "proto/wire/reply.h"

namespace flagos::client {

// error_code of the torch.AcceleratorError that stands for a lost device: the executor is gone and with it every
// tensor. Never changes; flagos.DeviceLostError is recognised by it.
inline constexpr int32_t kDeviceLostErrorCode = 70001;
// error_code of the one that stands for a fault that only the device could know.
inline constexpr int32_t kDeviceFaultErrorCode = 70002;

// Throws the type that the comments of ErrorCode name. REQUIRES !error.ok().
[[noreturn]] void Throw(const Error& error);

// Raises a warning of the executor again, in this thread.
void Warn(const Warning& warning);

}  // namespace flagos::client
