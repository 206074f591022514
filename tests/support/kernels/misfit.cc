// SPDX-License-Identifier: Apache-2.0
// A kernel library that lies about a schema (compiled as `misfit`), or that does not fit by what MISFIT_ENTRY says.
#include <ATen/core/Tensor.h>

#include "vendors/torch/kernel_library.h"

namespace {

at::Tensor Same(const at::Tensor& self) { return self; }

std::vector<flagos::torch_host::Kernel> Kernels() {
  return {flagos::torch_host::MakeKernel<&Same>("aten::mul.Tensor")};
}

}  // namespace

extern "C" __attribute__((visibility("default"))) flagos::torch_host::KernelEntry flagos_kernels() {
  return {MISFIT_ENTRY, &Kernels};
}
