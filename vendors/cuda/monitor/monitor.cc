// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/monitor/monitor.h"

#include <algorithm>
#include <array>

#include "proto/wire/types.h"
#include "vendors/cuda/monitor/figures.h"
#include "vendors/cuda/monitor/uuid.h"

namespace flagos::cuda {
namespace {

using Text = std::array<char, kNvmlTextSize>;

// Ends also where NVML does not end it.
std::string_view Read(const Text& text) {
  return {text.data(), static_cast<size_t>(std::ranges::find(text, '\0') - text.begin())};
}

}  // namespace

Error CudaMonitor::start(const std::map<std::string, std::string>&) {
  if (!loaded_) {
    auto nvml = LoadNvml();
    if (!nvml.ok()) return nvml.error();
    nvml_ = nvml.value();
    loaded_ = true;
  }
  if (const NvmlReturn status = nvml_.init(); status != kNvmlSuccess) {
    return NvmlError(nvml_, status, "figures of GPUs cannot be read");
  }
  Text version{};
  if (nvml_.driver_version != nullptr && nvml_.driver_version(version.data(), version.size()) == kNvmlSuccess) {
    driver_ = Read(version);
  }
  return Error::Ok();
}

Result<std::vector<DeviceReading>> CudaMonitor::read() {
  unsigned count = 0;
  if (const NvmlReturn status = nvml_.device_count(&count); status != kNvmlSuccess) {
    return NvmlError(nvml_, status, "the GPUs cannot be counted");
  }
  std::vector<DeviceReading> readings;
  for (unsigned index = 0; index < std::min(count, kMaxDevices); ++index) {
    NvmlDevice* device = nullptr;
    Text text{};
    // One that fell off the bus must not hide the others.
    if (nvml_.device(index, &device) != kNvmlSuccess) continue;
    if (nvml_.uuid(device, text.data(), text.size()) != kNvmlSuccess) continue;
    const auto uuid = ParseUuid(Read(text));
    if (!uuid) continue;
    DeviceReading& reading = readings.emplace_back(ReadFigures(nvml_, device));
    reading.uuid = *uuid;
    reading.driver = driver_;
  }
  return readings;
}

}  // namespace flagos::cuda
