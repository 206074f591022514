// SPDX-License-Identifier: Apache-2.0
// The vendor `cuda`: libtorch's CUDA kernels on NVIDIA GPUs.
#pragma once

#include <cstdint>
#include <memory>

#include "vendors/interface/vendor.h"
#include "vendors/torch/kernel_routes.h"

namespace flagos::cuda {

class CudaVendor final : public vendor::Vendor {
 public:
  const char* name() const override { return "cuda"; }
  std::string torch_version() const override;
  // Opens the devices' contexts and the libraries behind kernels, which takes seconds: a warm executor has them.
  Result<std::vector<DeviceRecord>> start(const vendor::Options& options) override;
  // REQUIRES start().
  Result<std::unique_ptr<vendor::Backend>> open(vendor::Host& host) override;

 private:
  uint8_t devices_ = 0;
  std::shared_ptr<torch_host::KernelRoutes> kernels_;
};

}  // namespace flagos::cuda
