// SPDX-License-Identifier: Apache-2.0
#include "vendors/null/vendor.h"

#include "vendors/interface/options.h"
#include "vendors/null/backend.h"

namespace flagos::null {
namespace {

constexpr uint64_t kDefaultMemory = uint64_t{16} << 30;

DeviceRecord Describe(uint32_t index, uint64_t memory) {
  DeviceRecord device{};
  CopyText(device.name, "null");
  device.total_memory = memory;
  device.multi_processor_count = 1;
  device.uuid[0] = 'n';
  device.uuid[15] = static_cast<uint8_t>(index);
  for (uint8_t dtype = 1; dtype < kDTypeCount; ++dtype) device.dtypes |= uint64_t{1} << dtype;
  return device;
}

}  // namespace

Result<std::vector<DeviceRecord>> NullVendor::start(const vendor::Options& options) {
  for (const auto& [name, value] : options.values) {
    if (name != "devices" && name != "memory" && name != "kernel_us") {
      return MakeError(ErrorCode::kValue,
                       "vendor null has no option \"" + name +
                           "\"; it has devices, memory and kernel_us. Correct flagosd's configuration");
    }
  }
  const auto present = vendor::ReadNumber(options, "null", "devices", kMaxDevices, 1);
  const auto memory = vendor::ReadNumber(options, "null", "memory", uint64_t{1} << 50, kDefaultMemory);
  const auto kernel = vendor::ReadNumber(options, "null", "kernel_us", 1'000'000, 0);
  if (!kernel.ok()) return kernel.error();
  kernel_ns_ = kernel.value() * 1000;
  if (!present.ok()) return present.error();
  if (!memory.ok()) return memory.error();
  const auto chosen = vendor::ChooseDevices(options, "null", present.value());
  if (!chosen.ok()) return chosen.error();

  std::vector<DeviceRecord> devices;
  for (const uint32_t index : chosen.value()) devices.push_back(Describe(index, memory.value()));
  device_count_ = static_cast<uint32_t>(devices.size());
  return devices;
}

Result<std::unique_ptr<vendor::Backend>> NullVendor::open(vendor::Host& host) {
  return std::unique_ptr<vendor::Backend>(std::make_unique<NullBackend>(host, device_count_, kernel_ns_));
}

}  // namespace flagos::null
