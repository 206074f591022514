// SPDX-License-Identifier: Apache-2.0
// The machine's processors and memory, which all devices of the vendor share: each tells the same.
#pragma once

#include <optional>
#include <string>

#include "vendors/cpu/monitor/proc_files.h"
#include "vendors/interface/monitor.h"

namespace flagos::cpu {

class CpuMonitor final : public vendor::Monitor {
 public:
  explicit CpuMonitor(std::string proc = "/proc", std::string sys = "/sys")
      : proc_(std::move(proc)), sys_(std::move(sys)) {}

  // Option: "devices", how many the node presents (1).
  Error start(const std::map<std::string, std::string>& options) override;
  // The utilisation is that since the reading before.
  Result<std::vector<DeviceReading>> read() override;

 private:
  const std::string proc_, sys_;
  uint32_t devices_ = 1;
  std::optional<ProcessorTimes> before_;
};

}  // namespace flagos::cpu
