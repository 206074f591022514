// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/WrapDimUtils.h>

#include <algorithm>
#include <cmath>

#include "vendors/cpu/kernels/accurate/kernels.h"

namespace flagos::accurate {
namespace {

void SoftmaxOfRow(const float* from, float* to, int64_t length, bool logarithm) {
  float largest = from[0];
  bool not_a_number = false;
  for (int64_t i = 0; i < length; ++i) {
    largest = std::max(largest, from[i]);
    not_a_number = not_a_number || std::isnan(from[i]);
  }
  const double most = not_a_number ? std::nan("") : static_cast<double>(largest);
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) sum += std::exp(static_cast<double>(from[i]) - most);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < length; ++i) {
    const double shifted = static_cast<double>(from[i]) - most;
    to[i] = static_cast<float>(logarithm ? shifted - log_sum : std::exp(shifted) / sum);
  }
}

at::Tensor Compute(const at::Tensor& self, int64_t dim, bool logarithm) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  const at::Tensor rows = self.dim() == 0 ? self.view(1) : self.movedim(dim, -1).contiguous();
  at::Tensor result = at::empty(rows.sizes(), rows.options());
  const int64_t length = rows.size(-1);
  const int64_t count = length == 0 ? 0 : rows.numel() / length;
  const float* const from = rows.const_data_ptr<float>();
  float* const to = result.mutable_data_ptr<float>();
  const int64_t grain = std::max<int64_t>(1, at::internal::GRAIN_SIZE / std::max<int64_t>(1, length));
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) SoftmaxOfRow(from + i * length, to + i * length, length, logarithm);
  });
  return self.dim() == 0 ? result.view(at::IntArrayRef()) : result.movedim(-1, dim).contiguous();
}

}  // namespace

// Only half-precision numbers may ask for a conversion, which is the vendor's own to refuse.
at::Tensor Softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  return half_to_float ? at::_softmax(self, dim, true) : Compute(self, dim, false);
}

at::Tensor LogSoftmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  return half_to_float ? at::_log_softmax(self, dim, true) : Compute(self, dim, true);
}

}  // namespace flagos::accurate
