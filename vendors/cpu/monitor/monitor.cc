// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/monitor/monitor.h"

#include <fstream>
#include <iterator>

#include "proto/wire/types.h"
#include "vendors/cpu/identity.h"
#include "vendors/cpu/monitor/temperature.h"
#include "vendors/interface/options.h"

namespace flagos::cpu {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Error CpuMonitor::start(const std::map<std::string, std::string>& options) {
  const auto devices = vendor::ReadNumber({.devices = {}, .values = options}, "cpu", "devices", kMaxDevices, 1);
  if (!devices.ok()) return devices.error();
  devices_ = static_cast<uint32_t>(devices.value());
  before_ = ParseProcessorTimes(ReadFile(proc_ + "/stat"));
  if (!before_ && !ParseMemory(ReadFile(proc_ + "/meminfo"))) {
    return MakeError(ErrorCode::kUnavailable, "there are no figures of processors and memory: " + proc_ +
                                                  " has neither stat nor meminfo; mount it: mount -t proc proc /proc");
  }
  return Error::Ok();
}

Result<std::vector<DeviceReading>> CpuMonitor::read() {
  DeviceReading reading;
  const auto now = ParseProcessorTimes(ReadFile(proc_ + "/stat"));
  if (before_ && now) reading.utilisation = Utilisation(*before_, *now);
  before_ = now;
  if (const auto memory = ParseMemory(ReadFile(proc_ + "/meminfo"))) {
    reading.memory_used = memory->used;
    reading.memory_total = memory->total;
  }
  reading.temperature = ReadTemperature(sys_);
  std::vector<DeviceReading> readings(devices_, reading);
  for (uint32_t index = 0; index < devices_; ++index) readings[index].uuid = UuidOf(index);
  return readings;
}

}  // namespace flagos::cpu
