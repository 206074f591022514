// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/devices.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "vendors/cuda/errors.h"
#include "vendors/interface/options.h"
#include "vendors/torch/kernel_options.h"

namespace flagos::cuda {
namespace {

// The names of the devices that the process may use, as CUDA_VISIBLE_DEVICES has them; empty: it does not say.
std::vector<std::string> Visible() {
  std::vector<std::string> names;
  const char* const listed = std::getenv("CUDA_VISIBLE_DEVICES");
  if (listed == nullptr) return names;
  std::istringstream in(listed);
  for (std::string name; std::getline(in, name, ',');) names.push_back(name);
  return names;
}

// CUDA reads the variable when it is first used: device numbers of the node become those of the process.
void Restrict(const std::vector<uint32_t>& wanted) {
  if (wanted.empty()) return;
  const std::vector<std::string> visible = Visible();
  std::string chosen;
  for (const uint32_t index : wanted) {
    chosen += (chosen.empty() ? "" : ",") + (index < visible.size() ? visible[index] : std::to_string(index));
  }
  ::setenv("CUDA_VISIBLE_DEVICES", chosen.c_str(), 1);
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
}

DeviceRecord Describe(const cudaDeviceProp& properties) {
  DeviceRecord device{};
  CopyText(device.name, properties.name);
  device.total_memory = properties.totalGlobalMem;
  device.multi_processor_count = static_cast<uint32_t>(properties.multiProcessorCount);
  device.major = static_cast<uint16_t>(properties.major);
  device.minor = static_cast<uint16_t>(properties.minor);
  static_assert(sizeof device.uuid == sizeof properties.uuid.bytes);
  std::memcpy(device.uuid, properties.uuid.bytes, sizeof device.uuid);
  for (uint8_t dtype = 1; dtype < kDTypeCount; ++dtype) device.dtypes |= uint64_t{1} << dtype;
  return device;
}

}  // namespace

Result<std::vector<DeviceRecord>> OpenDevices(const vendor::Options& options) {
  for (const auto& [name, value] : options.values) {
    if (torch_host::IsKernelOption(name)) continue;
    if (name == "devices") {
      return MakeError(ErrorCode::kValue,
                       "vendor cuda counts the node's GPUs itself; instead of --devices (in flagosd's configuration: "
                       "[devices] count) choose GPUs with [devices] include or CUDA_VISIBLE_DEVICES");
    }
    return MakeError(ErrorCode::kValue, "vendor cuda has no option \"" + name + "\"; correct flagosd's configuration");
  }
  Restrict(options.devices);
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    return MakeError(ErrorCode::kUnavailable, NoDevices(status));
  }
  const auto chosen = vendor::ChooseDevices({}, "cuda", static_cast<uint64_t>(count));
  if (!chosen.ok()) return chosen.error();
  if (!options.devices.empty() && options.devices.size() != static_cast<size_t>(count)) {
    return MakeError(ErrorCode::kNotFound, "of the " + std::to_string(options.devices.size()) +
                                               " GPUs that were asked for the process sees " + std::to_string(count) +
                                               "; compare flagosd's devices with `nvidia-smi -L`");
  }
  std::vector<DeviceRecord> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    // Where a call waits for the device, its client waits for the call: a core that spins meanwhile is well spent.
    cudaError_t status = cudaInitDevice(index, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid);
    if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, index);
    if (status != cudaSuccess) return MakeError(ErrorCode::kUnavailable, NoDevices(status));
    devices.push_back(Describe(properties));
  }
  return devices;
}

}  // namespace flagos::cuda
