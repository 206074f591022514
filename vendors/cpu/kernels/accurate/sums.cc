// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "vendors/cpu/kernels/accurate/kernels.h"
#include "vendors/cpu/kernels/accurate/rows.h"

namespace flagos::accurate {
namespace {

constexpr int64_t kGrain = at::internal::GRAIN_SIZE;

// One long row is shared out among threads, many rows are shared out as they are.
double SumOfRow(const float* numbers, int64_t count) {
  return at::parallel_reduce(
      0, count, kGrain, 0.0,
      [&](int64_t begin, int64_t end, double so_far) { return so_far + SumOf(numbers + begin, end - begin); },
      [](double a, double b) { return a + b; });
}

at::Tensor Reduce(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim, bool mean) {
  const Rows rows = RowsOver(self, dims, keepdim);
  at::Tensor result = at::empty(rows.sizes, self.options());
  float* const to = result.mutable_data_ptr<float>();
  const double divisor = mean ? static_cast<double>(rows.length) : 1.0;
  if (rows.count == 1) {
    *to = static_cast<float>(SumOfRow(rows.row(0), rows.length) / divisor);
    return result;
  }
  at::parallel_for(0, rows.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows.length)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       to[i] = static_cast<float>(SumOf(rows.row(i), rows.length) / divisor);
                   });
  return result;
}

bool IsFloat(std::optional<at::ScalarType> dtype) { return dtype.value_or(at::kFloat) == at::kFloat; }

}  // namespace

// A result of another type is the vendor's own to make: at:: functions called from here reach its kernels.
at::Tensor Sum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
               std::optional<at::ScalarType> dtype) {
  return IsFloat(dtype) ? Reduce(self, dims, keepdim, false) : at::sum(self, dims, keepdim, dtype);
}

at::Tensor Mean(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                std::optional<at::ScalarType> dtype) {
  return IsFloat(dtype) ? Reduce(self, dims, keepdim, true) : at::mean(self, dims, keepdim, dtype);
}

}  // namespace flagos::accurate
