// SPDX-License-Identifier: Apache-2.0
// What of a call's arguments decides whether a kernel for them exists.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <span>

#include "client/forward/operator.h"

namespace flagos::client {

// Never 0. Of the data types of all tensors among the arguments, in order, the kinds of the numbers, the data types
// that are arguments themselves, and the words (a rounding mode). REQUIRES the operator's arguments.
uint64_t TypesKey(const Operator& op, std::span<const c10::IValue> arguments);

}  // namespace flagos::client
