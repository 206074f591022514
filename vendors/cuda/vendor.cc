// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/vendor.h"

#include <torch/version.h>

#include <memory>

#include "vendors/cuda/devices.h"
#include "vendors/cuda/runtime.h"
#include "vendors/cuda/scalar_read.h"
#include "vendors/cuda/warm_up.h"
#include "vendors/torch/backend.h"
#include "vendors/torch/failures.h"
#include "vendors/torch/kernel_options.h"

namespace flagos::cuda {

std::string CudaVendor::torch_version() const { return TORCH_VERSION; }

Result<std::vector<DeviceRecord>> CudaVendor::start(const vendor::Options& options) {
  try {
    auto kernels = torch_host::KernelRoutes::Make(torch_host::ReadKernelOptions(options), c10::DispatchKey::CUDA);
    if (!kernels.ok()) return kernels.error();
    kernels_ = std::move(kernels).value();
    auto devices = OpenDevices(options);
    if (!devices.ok()) return devices;
    devices_ = static_cast<uint8_t>(devices.value().size());
    ReplaceScalarRead();
    for (uint8_t device = 0; device < devices_; ++device) WarmUp(device);
    return devices;
  } catch (...) {
    return torch_host::CurrentError();
  }
}

Result<std::unique_ptr<vendor::Backend>> CudaVendor::open(vendor::Host& host) {
  try {
    auto runtime = std::make_unique<CudaRuntime>(devices_, host);
    return std::unique_ptr<vendor::Backend>(
        std::make_unique<torch_host::TorchBackend>(host, std::move(runtime), kernels_));
  } catch (...) {
    return torch_host::CurrentError();
  }
}

}  // namespace flagos::cuda
