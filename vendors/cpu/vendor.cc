// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/vendor.h"

#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "vendors/cpu/identity.h"
#include "vendors/cpu/options.h"
#include "vendors/cpu/runtime.h"
#include "vendors/torch/backend.h"
#include "vendors/torch/failures.h"

namespace flagos::cpu {
namespace {

// Every large block of memory is a descriptor.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

DeviceRecord Describe(uint32_t index, uint64_t memory) {
  DeviceRecord device{};
  CopyText(device.name, "CPU (flagos) " + std::to_string(index));
  device.total_memory = memory;
  device.multi_processor_count = std::max(1u, std::thread::hardware_concurrency());
  const DeviceUuid uuid = UuidOf(index);
  std::copy(uuid.begin(), uuid.end(), device.uuid);
  for (uint8_t dtype = 1; dtype < kDTypeCount; ++dtype) device.dtypes |= uint64_t{1} << dtype;
  return device;
}

}  // namespace

std::string CpuVendor::torch_version() const { return TORCH_VERSION; }

Result<std::vector<DeviceRecord>> CpuVendor::start(const vendor::Options& options) {
  const auto read = ReadOptions(options);
  if (!read.ok()) return read.error();
  const CpuOptions& chosen = read.value();
  auto kernels = torch_host::KernelRoutes::Make(torch_host::ReadKernelOptions(options), c10::DispatchKey::CPU);
  if (!kernels.ok()) return kernels.error();
  kernels_ = std::move(kernels).value();
  if (chosen.threads > 0) at::set_num_threads(chosen.threads);
  RaiseDescriptorLimit();
  std::vector<DeviceRecord> devices;
  for (const uint32_t index : chosen.devices) devices.push_back(Describe(index, chosen.memory));
  allocator_ = &Allocator::Install(static_cast<uint32_t>(devices.size()), chosen.memory);
  return devices;
}

Result<std::unique_ptr<vendor::Backend>> CpuVendor::open(vendor::Host& host) {
  try {
    auto runtime = std::make_unique<CpuRuntime>(*allocator_, host);
    return std::unique_ptr<vendor::Backend>(
        std::make_unique<torch_host::TorchBackend>(host, std::move(runtime), kernels_));
  } catch (...) {
    return torch_host::CurrentError();
  }
}

}  // namespace flagos::cpu
