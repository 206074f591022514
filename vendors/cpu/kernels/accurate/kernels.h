// SPDX-License-Identifier: Apache-2.0
// The kernels of the library, each in place of the operator of its name, for float32 tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace flagos::accurate {

at::Tensor Sum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim, std::optional<at::ScalarType> dtype);
at::Tensor Mean(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                std::optional<at::ScalarType> dtype);
at::Tensor Dot(const at::Tensor& self, const at::Tensor& other);
at::Tensor Softmax(const at::Tensor& self, int64_t dim, bool half_to_float);
at::Tensor LogSoftmax(const at::Tensor& self, int64_t dim, bool half_to_float);

}  // namespace flagos::accurate
