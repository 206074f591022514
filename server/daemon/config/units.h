// SPDX-License-Identifier: Apache-2.0
// Sizes and durations as people write them in configuration. A bare number is refused: nobody knows what it meant.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace flagos::daemon {

// "64MiB", "1.5GiB", "4096B", "2GB". KiB, MiB, GiB and TiB are powers of 1024; kB, MB, GB and TB of 1000.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);

// "5s", "250ms", "15m", "2h", "1.5s"; at most a year.
absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// The shortest exact form with a unit: "64MiB", "300s".
std::string FormatBytes(uint64_t bytes);
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace flagos::daemon
