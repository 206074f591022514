// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vendors/cpu/kernels/accurate/kernels.h"
#include "vendors/torch/kernel_library.h"

namespace flagos::accurate {
namespace {

bool AllFloat32(std::span<const c10::ScalarType> tensors) {
  return std::ranges::all_of(tensors, [](c10::ScalarType type) { return type == c10::ScalarType::Float; });
}

std::vector<torch_host::Kernel> Kernels() {
  using torch_host::MakeKernel;
  return {MakeKernel<&Sum>("aten::sum.dim_IntList", &AllFloat32), MakeKernel<&Mean>("aten::mean.dim", &AllFloat32),
          MakeKernel<&Dot>("aten::dot", &AllFloat32), MakeKernel<&Softmax>("aten::_softmax", &AllFloat32),
          MakeKernel<&LogSoftmax>("aten::_log_softmax", &AllFloat32)};
}

}  // namespace
}  // namespace flagos::accurate

FLAGOS_REGISTER_KERNELS("accurate", "sum, mean, dot and softmax of float32 tensors, accumulated in float64", c10::kCPU,
                        &flagos::accurate::Kernels)
