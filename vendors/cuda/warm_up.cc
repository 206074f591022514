// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/warm_up.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

namespace flagos::cuda {

void WarmUp(uint8_t device) {
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  const c10::Device on(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
  c10::cuda::set_device(on.index());
  {
    const c10::InferenceMode inference;
    const at::Tensor x = at::ones({8, 8}, at::device(on).dtype(at::kFloat));
    const at::Tensor y = at::addmm(x, x, x).relu_();
    const at::Tensor image = at::ones({1, 4, 8, 8}, x.options());
    const at::Tensor z = at::conv2d(image, at::ones({4, 4, 3, 3}, x.options()), {}, 1, 1);
    y.softmax(-1).sum().add_(z.sum()).item<float>();
  }
  c10::cuda::device_synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
}

}  // namespace flagos::cuda
