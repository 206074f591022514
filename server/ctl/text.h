// SPDX-License-Identifier: Apache-2.0
// Text for people: its width on a terminal, and numbers in human units.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "server/common/strings.h"

namespace flagos::ctl {

// Columns that a printable text takes, counting a code point as one.
size_t DisplayWidth(std::string_view text);

enum class Units { kIec, kSi, kRaw };

// "1.5GiB", "1.6GB" or "1610612736".
std::string FormatBytes(uint64_t bytes, Units units);
// "250ms", "12.5s", "3m12s", "2h05m", "3d04h"; raw: seconds with three digits.
std::string FormatSeconds(double seconds, Units units);
// "42%"; raw: "0.4200".
std::string FormatRatio(double ratio, Units units);
// "65W"; raw: "65.3", without its unit.
std::string FormatFigure(double value, std::string_view unit, Units units);
// RFC 3339 in UTC; empty for 0.
std::string FormatTime(double unix_seconds);

}  // namespace flagos::ctl
