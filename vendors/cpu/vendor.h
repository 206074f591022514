// SPDX-License-Identifier: Apache-2.0
// The vendor `cpu`: libtorch's CPU kernels, for machines without an accelerator and as the reference for others.
#pragma once

#include <memory>

#include "vendors/cpu/allocator.h"
#include "vendors/interface/vendor.h"
#include "vendors/torch/kernel_routes.h"

namespace flagos::cpu {

class CpuVendor final : public vendor::Vendor {
 public:
  const char* name() const override { return "cpu"; }
  std::string torch_version() const override;
  Result<std::vector<DeviceRecord>> start(const vendor::Options& options) override;
  // REQUIRES start().
  Result<std::unique_ptr<vendor::Backend>> open(vendor::Host& host) override;

 private:
  Allocator* allocator_ = nullptr;
  std::shared_ptr<torch_host::KernelRoutes> kernels_;
};

}  // namespace flagos::cpu
