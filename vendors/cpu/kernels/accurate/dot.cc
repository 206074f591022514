// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "vendors/cpu/kernels/accurate/kernels.h"
#include "vendors/cpu/kernels/accurate/rows.h"

namespace flagos::accurate {

at::Tensor Dot(const at::Tensor& self, const at::Tensor& other) {
  if (self.dim() != 1 || other.dim() != 1 || self.numel() != other.numel()) return at::dot(self, other);  // its error
  const at::Tensor left = self.contiguous(), right = other.contiguous();
  const double sum = SumOfProducts(left.const_data_ptr<float>(), right.const_data_ptr<float>(), left.numel());
  at::Tensor result = at::empty({}, self.options());
  *result.mutable_data_ptr<float>() = static_cast<float>(sum);  // infinite where it is too large; fill_ would refuse it
  return result;
}

}  // namespace flagos::accurate
