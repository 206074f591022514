// SPDX-License-Identifier: Apache-2.0
// CPU tensors as operands of a call on the device.
#pragma once

#include <c10/core/TensorImpl.h>

#include "client/forward/call_buffer.h"

namespace flagos::client {

// Up to here a host tensor's bytes travel inside the call's record.
inline constexpr size_t kInlineBytes = 2048;

// Writes a dense CPU tensor into the call: by value (0-dim), inside the record (small), or through the arena. False
// where the wire does not know its data type. The bytes are taken before this returns.
bool EncodeHostOperand(c10::TensorImpl* impl, CallBuffer& buffer);

bool LiesInArena(const c10::TensorImpl& impl);

// Writes a dense CPU tensor that lies in the arena by its place there. The caller keeps it until the call is complete.
bool EncodeSharedOperand(const c10::TensorImpl& impl, CallBuffer& buffer);

}  // namespace flagos::client
