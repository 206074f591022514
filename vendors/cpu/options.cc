// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/options.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include "proto/wire/types.h"
#include "vendors/interface/options.h"
#include "vendors/torch/kernel_options.h"

namespace flagos::cpu {
namespace {

constexpr std::string_view kName = "cpu";

}  // namespace

uint64_t PhysicalMemory() {
  const auto pages = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const uint64_t machine = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t container = 0;
  std::ifstream limit("/sys/fs/cgroup/memory.max");  // "max" where there is none
  return limit >> container && container > 0 ? std::min(machine, container) : machine;
}

Result<CpuOptions> ReadOptions(const vendor::Options& options) {
  for (const auto& [name, value] : options.values) {
    if (name != "devices" && name != "memory" && name != "threads" && !torch_host::IsKernelOption(name)) {
      return MakeError(ErrorCode::kValue,
                       "vendor cpu has no option \"" + name +
                           "\"; it has devices, memory, threads, kernels and routes. Correct flagosd's configuration");
    }
  }
  const auto present = vendor::ReadNumber(options, kName, "devices", kMaxDevices, 1);
  const auto memory = vendor::ReadNumber(options, kName, "memory", uint64_t{1} << 50, PhysicalMemory());
  const auto threads = vendor::ReadNumber(options, kName, "threads", 1024, 0);
  for (const auto* number : {&present, &memory, &threads}) {
    if (!number->ok()) return number->error();
  }
  auto devices = vendor::ChooseDevices(options, kName, present.value());
  if (!devices.ok()) return devices.error();

  CpuOptions read;
  read.devices = std::move(devices.value());
  read.memory = memory.value();
  read.threads = static_cast<int>(threads.value());
  return read;
}

}  // namespace flagos::cpu
