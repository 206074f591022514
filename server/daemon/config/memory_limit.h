// SPDX-License-Identifier: Apache-2.0
// How much of each device a lease may hold, as people write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace flagos::daemon {

struct MemoryLimit {
  uint64_t bytes = 0;  // 0: not in bytes
  double percent = 0;  // of the device's memory; 0: not as a part of it. Neither: no limit

  bool limited() const { return bytes != 0 || percent != 0; }
  // Of a device with so much memory; 0: no limit, which a limit never comes out as.
  uint64_t of(uint64_t device_memory) const;
};

// "4GiB", "25%" or "none".
absl::StatusOr<MemoryLimit> ParseMemoryLimit(std::string_view text);
std::string FormatMemoryLimit(const MemoryLimit& limit);

}  // namespace flagos::daemon
