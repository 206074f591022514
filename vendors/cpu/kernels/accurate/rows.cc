// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/kernels/accurate/rows.h"

#include <ATen/WrapDimUtilsMulti.h>

namespace flagos::accurate {

Rows RowsOver(const at::Tensor& tensor, at::OptionalIntArrayRef dims, bool keepdim) {
  const int64_t rank = tensor.dim();
  auto reduced = at::dim_list_to_bitset(dims.value_or(at::IntArrayRef()), static_cast<size_t>(rank));
  if (!dims || dims->empty()) reduced.set();
  Rows rows;
  std::vector<int64_t> order, last;
  for (int64_t i = 0; i < rank; ++i) {
    const bool in_row = reduced[static_cast<size_t>(i)];
    (in_row ? last : order).push_back(i);
    (in_row ? rows.length : rows.count) *= tensor.size(i);
    if (!in_row) rows.sizes.push_back(tensor.size(i));
    if (in_row && keepdim) rows.sizes.push_back(1);
  }
  order.insert(order.end(), last.begin(), last.end());
  rows.data = tensor.permute(order).contiguous();
  return rows;
}

// Four sums side by side, so that one addition need not wait for the one before.
double SumOf(const float* numbers, int64_t count) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int64_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(numbers[i + k]);
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(numbers[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double SumOfProducts(const float* numbers, const float* others, int64_t count) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int64_t k = 0; k < 4; ++k) {
      sums[k] += static_cast<double>(numbers[i + k]) * static_cast<double>(others[i + k]);
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(numbers[i]) * static_cast<double>(others[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace flagos::accurate
