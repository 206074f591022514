// SPDX-License-Identifier: Apache-2.0
// What can be configured of the vendor.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/wire/error.h"
#include "vendors/interface/vendor.h"

namespace flagos::cpu {

struct CpuOptions {
  std::vector<uint32_t> devices;  // numbers on the node of those that the session sees
  uint64_t memory = 0;            // bytes of each device; the machine's, unless option "memory" says otherwise
  int threads = 0;                // of a kernel; 0: as many as PyTorch takes by itself
};

// Options: "devices" (how many the node has; 1), "memory" (bytes of each), "threads".
Result<CpuOptions> ReadOptions(const vendor::Options& options);

// Bytes of memory that this machine or its container has.
uint64_t PhysicalMemory();

}  // namespace flagos::cpu
