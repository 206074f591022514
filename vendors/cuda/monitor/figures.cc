// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/monitor/figures.h"

#include <algorithm>
#include <array>

namespace flagos::cuda {
namespace {

constexpr double kMilli = 1e-3;

// What the call returns through its last argument, of type Out; nullopt where it is not there or fails.
template <class Out, class Function, class... Arguments>
std::optional<Out> Ask(Function function, Arguments... arguments) {
  Out out{};
  if (function == nullptr || function(arguments..., &out) != kNvmlSuccess) return std::nullopt;
  return out;
}

std::optional<double> Scaled(const std::optional<unsigned>& value, double scale) {
  return value ? std::optional(*value * scale) : std::nullopt;
}

double Percent(unsigned value) { return std::min(value, 100u) / 100.0; }

void ReadMemory(const Nvml& nvml, NvmlDevice* device, DeviceReading& reading) {
  NvmlMemoryV2 memory{};
  memory.version = kNvmlMemoryV2;
  if (nvml.memory_v2 != nullptr && nvml.memory_v2(device, &memory) == kNvmlSuccess) {
    reading.memory_used = memory.used;
    reading.memory_total = memory.total;
  } else if (const auto older = Ask<NvmlMemory>(nvml.memory, device)) {
    reading.memory_used = older->used;
    reading.memory_total = older->total;
  }
}

const char* ModeName(int mode) {
  switch (mode) {
    case 0: return "default";
    case 1: return "exclusive thread";
    case 2: return "prohibited";
    case 3: return "exclusive process";
    default: return "unknown";
  }
}

void ReadProcesses(const Nvml& nvml, NvmlDevice* device, DeviceReading& reading) {
  if (nvml.processes == nullptr) return;
  // Room for as many as are told on, and for those that come meanwhile.
  std::array<NvmlProcess, 4 * kMaxReadingProcesses> found;
  auto count = static_cast<unsigned>(found.size());
  if (nvml.processes(device, &count, found.data()) != kNvmlSuccess) return;
  for (unsigned i = 0; i < std::min<size_t>(count, found.size()); ++i) {
    DeviceProcess& process = reading.processes.emplace_back();
    process.pid = found[i].pid;
    if (found[i].used_memory != kNvmlNoValue) process.memory = found[i].used_memory;
  }
  // Where there are too many, the large ones are told.
  std::ranges::stable_sort(reading.processes, [](const DeviceProcess& a, const DeviceProcess& b) {
    return a.memory.value_or(0) > b.memory.value_or(0);
  });
  if (reading.processes.size() > kMaxReadingProcesses) reading.processes.resize(kMaxReadingProcesses);
}

}  // namespace

std::string ClocksHeldBy(unsigned long long reasons) {
  struct Reason {
    unsigned long long bit;
    const char* name;
  };
  static constexpr Reason kReasons[] = {
      {0x1, "idle"},
      {0x2, "clock setting"},
      {0x4, "power cap"},
      {0x8, "slowdown"},
      {0x10, "sync boost"},
      {0x20, "heat"},
      {0x40, "heat (hardware)"},
      {0x80, "power brake"},
      {0x100, "display clock setting"},
  };
  std::string text;
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bit) != 0) text += (text.empty() ? "" : ", ") + std::string(reason.name);
  }
  if (text.empty()) return reasons == 0 ? "none" : "unknown";
  return text;
}

DeviceReading ReadFigures(const Nvml& nvml, NvmlDevice* device) {
  DeviceReading reading;
  if (const auto used = Ask<NvmlUtilization>(nvml.utilization, device)) {
    reading.utilisation = Percent(used->gpu);
    reading.memory_utilisation = Percent(used->memory);
  }
  ReadMemory(nvml, device, reading);
  reading.temperature = Scaled(Ask<unsigned>(nvml.temperature, device, kNvmlTemperatureGpu), 1);
  reading.power = Scaled(Ask<unsigned>(nvml.power, device), kMilli);
  reading.power_limit = Scaled(Ask<unsigned>(nvml.power_limit, device), kMilli);
  reading.sm_clock = Scaled(Ask<unsigned>(nvml.clock, device, kNvmlClockSm), 1);
  reading.sm_clock_max = Scaled(Ask<unsigned>(nvml.max_clock, device, kNvmlClockSm), 1);
  reading.memory_clock = Scaled(Ask<unsigned>(nvml.clock, device, kNvmlClockMemory), 1);
  reading.memory_clock_max = Scaled(Ask<unsigned>(nvml.max_clock, device, kNvmlClockMemory), 1);
  if (const auto reasons = Ask<unsigned long long>(nvml.clock_reasons, device)) {
    reading.clocks_held = ClocksHeldBy(*reasons);
  }
  reading.ecc_corrected = Ask<unsigned long long>(nvml.ecc_errors, device, kNvmlCorrected, kNvmlVolatile);
  reading.ecc_uncorrected = Ask<unsigned long long>(nvml.ecc_errors, device, kNvmlUncorrected, kNvmlVolatile);
  if (const auto mode = Ask<int>(nvml.compute_mode, device)) reading.compute_mode = ModeName(*mode);
  unsigned pending = 0;
  if (unsigned current = 0; nvml.mig_mode != nullptr && nvml.mig_mode(device, &current, &pending) == kNvmlSuccess) {
    reading.mig = current == 1;
  }
  ReadProcesses(nvml, device, reading);
  return reading;
}

}  // namespace flagos::cuda
