// SPDX-License-Identifier: Apache-2.0
// A call's arguments as PyTorch boxed them, written as the wire wants them.
#pragma once

#include <ATen/core/ivalue.h>

#include "client/forward/call_buffer.h"
#include "client/forward/operator.h"

namespace flagos::client {

// Fills a cleared buffer. Throws for what cannot cross: operands on several devices (RuntimeError, as PyTorch words
// it), quantized, nested and meta tensors and types that the wire does not know (NotImplementedError).
void EncodeCall(const Operator& op, uint32_t context, Arguments arguments, CallBuffer& buffer);

}  // namespace flagos::client
