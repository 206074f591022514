// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <array>
#include <cmath>

namespace flagos::ctl {
namespace {

std::string Scaled(double value, double step, const std::array<const char*, 7>& names) {
  size_t power = 0;
  while (value >= step && power + 1 < names.size()) {
    value /= step;
    ++power;
  }
  if (power == 0 || value >= 100) return absl::StrFormat("%.0f%s", value, names[power]);
  const std::string digits = absl::StrFormat("%.1f", value);
  return absl::StrCat(digits.ends_with(".0") ? digits.substr(0, digits.size() - 2) : digits, names[power]);
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += IsUtf8Continuation(c) ? 0 : 1;
  return width;
}

std::string FormatBytes(uint64_t bytes, Units units) {
  switch (units) {
    case Units::kIec: return Scaled(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
    case Units::kSi: return Scaled(static_cast<double>(bytes), 1000, {"B", "kB", "MB", "GB", "TB", "PB", "EB"});
    case Units::kRaw: break;
  }
  return absl::StrCat(bytes);
}

std::string FormatSeconds(double seconds, Units units) {
  if (units == Units::kRaw) return absl::StrFormat("%.3f", seconds);
  if (!(seconds > 0)) return "0s";
  if (seconds < 0.9995) return absl::StrFormat("%.0fms", seconds * 1e3);
  if (seconds < 59.95) return absl::StrFormat("%.1fs", seconds);
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 3600) return absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  if (whole < 86400) return absl::StrFormat("%dh%02dm", whole / 3600, whole % 3600 / 60);
  return absl::StrFormat("%dd%02dh", whole / 86400, whole % 86400 / 3600);
}

std::string FormatRatio(double ratio, Units units) {
  return units == Units::kRaw ? absl::StrFormat("%.4f", ratio) : absl::StrFormat("%.0f%%", ratio * 100);
}

std::string FormatFigure(double value, std::string_view unit, Units units) {
  if (units == Units::kRaw) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.0f", value) + std::string(unit);
}

std::string FormatTime(double unix_seconds) {
  if (!(unix_seconds > 0)) return {};
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::UnixEpoch() + absl::Seconds(unix_seconds),
                          absl::UTCTimeZone());
}

}  // namespace flagos::ctl
