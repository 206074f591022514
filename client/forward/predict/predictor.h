// SPDX-License-Identifier: Apache-2.0
// Predicting what a call returns from its arguments, without asking the executor and without PyTorch's dispatcher.
#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>

#include "proto/wire/signature.h"

namespace flagos::client {

using Arguments = std::span<const c10::IValue>;

// Fills `outcome` with an Output for each return of the operator that is no mutated argument, and returns true; false
// where it cannot say. May throw what PyTorch throws for arguments that do not fit. Either way the caller then asks the
// executor, whose answer or error counts.
using Predictor = bool (*)(Arguments arguments, Outcome& outcome);

// The predictor of an operator ("aten::add.Tensor"), or null.
Predictor FindPredictor(std::string_view name);

}  // namespace flagos::client
