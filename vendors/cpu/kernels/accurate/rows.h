// SPDX-License-Identifier: Apache-2.0
// A tensor as rows of numbers to add up.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace flagos::accurate {

struct Rows {
  at::Tensor data;  // float32, contiguous: `count` rows of `length` numbers
  int64_t count = 1, length = 1;
  std::vector<int64_t> sizes;  // of what has one number for each row

  const float* row(int64_t index) const { return data.const_data_ptr<float>() + index * length; }
};

// The numbers that differ only in the dimensions `dims` (none or empty: all) are a row. `keepdim` leaves these
// dimensions in `sizes`, with size 1. Throws PyTorch's errors about dimensions that are not there or come twice.
Rows RowsOver(const at::Tensor& tensor, at::OptionalIntArrayRef dims, bool keepdim);

// The sum of a row, of its products with another.
double SumOf(const float* numbers, int64_t count);
double SumOfProducts(const float* numbers, const float* others, int64_t count);

}  // namespace flagos::accurate
