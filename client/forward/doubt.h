// SPDX-License-Identifier: Apache-2.0
// Calls that PyTorch may refuse for what stands in no signature: where two operands lie, and the values of numbers.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <span>

#include "client/forward/call_buffer.h"
#include "client/forward/operator.h"

namespace flagos::client {

// Whether the executor has to be asked although it knows the call's signature, so that an error is raised at its call:
// a tensor that is written overlaps with another operand, or an out= tensor covers one; a number does not fit an
// integral operand; an integral power is negative; the parameters of a distribution were not seen before; an operand is
// sparse. REQUIRES the arguments and their encoding.
bool IsDoubtful(const Operator& op, std::span<const c10::IValue> arguments, const CallBuffer& buffer);

// The executor has accepted the call's numbers.
void Accepted(Operator& op, const CallBuffer& buffer);

}  // namespace flagos::client
