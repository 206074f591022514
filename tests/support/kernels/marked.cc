// SPDX-License-Identifier: Apache-2.0
// Kernels whose results show who ran.
#include <ATen/ATen.h>

#include "vendors/torch/kernel_library.h"

namespace {

at::Tensor Mul(const at::Tensor& self, const at::Tensor& other) { return at::mul(self, other).add_(1000); }

at::Tensor& Uniform(at::Tensor& self, double from, double to, std::optional<at::Generator> generator) {
  return self.uniform_(from, to, std::move(generator)).neg_();
}

at::Tensor Neg(const at::Tensor&) { TORCH_CHECK_VALUE(false, "marked neg refuses"); }

void Sigmoid(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  stack->back() = at::sigmoid(stack->back().toTensor()).add_(1000);
}

std::vector<flagos::torch_host::Kernel> Kernels() {
  using namespace flagos::torch_host;
  return {MakeKernel<&Mul>("aten::mul.Tensor"), MakeKernel<&Uniform>("aten::uniform_"), MakeKernel<&Neg>("aten::neg"),
          MakeBoxedKernel<&Sigmoid>("aten::sigmoid")};
}

}  // namespace

FLAGOS_REGISTER_KERNELS("marked", "adds 1000", c10::kCPU, &Kernels)
