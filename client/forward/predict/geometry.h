// SPDX-License-Identifier: Apache-2.0
// Outputs as predictors state them.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "client/forward/predict/predictor.h"

namespace flagos::client {

// A new tensor of that geometry. The device is the call's; the caller fills it in.
Output NewOutput(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype);
// The same, contiguous.
Output NewOutput(c10::IntArrayRef sizes, c10::ScalarType dtype);
Output NewOutput(const at::Tensor& twin);
// A result of the tensor's sizes and dense strides, as PyTorch's empty_like() gives it.
Output OutputLike(const at::Tensor& tensor);
Output OutputLike(const at::Tensor& tensor, c10::ScalarType dtype);

// Whether a call that writes a result of those sizes and that type into the argument `target` leaves that one's
// geometry alone and is sure to be accepted: same sizes, the same data type or, for an operator that `casts`, one that
// it can be cast to, no elements that overlap with each other or with another argument.
bool WritesInPlace(Arguments arguments, size_t target, c10::IntArrayRef sizes, c10::ScalarType dtype, bool casts);

}  // namespace flagos::client
