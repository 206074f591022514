// SPDX-License-Identifier: Apache-2.0
// FLAGOS_CHECK_PREDICTIONS=1: every call waits, and what was predicted of its results is compared with what they are.
// For finding wrong rules of prediction: without it one costs a copy of the result, and is counted (mispredictions).
#pragma once

#include "client/forward/operator.h"
#include "proto/wire/signature.h"

namespace flagos::client {

// Read once.
bool ChecksPredictions();

// Throws c10::Error that says what differs: type, sizes, strides, offset, lazy bits or which input is aliased. Sizes of
// storages may differ.
void CheckPrediction(const Operator& op, const Outcome& predicted, const Outcome& actual);

// Throws: the executor had to make a result of a known signature what it was the first time.
[[noreturn]] void ThrowAdapted(const Operator& op);

}  // namespace flagos::client
