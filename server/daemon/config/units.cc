// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/units.h"

#include <array>
#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 9> kByteUnits = {{{"B", 1},
                                             {"KiB", 1024.0},
                                             {"MiB", 1024.0 * 1024},
                                             {"GiB", 1024.0 * 1024 * 1024},
                                             {"TiB", 1024.0 * 1024 * 1024 * 1024},
                                             {"kB", 1e3},
                                             {"MB", 1e6},
                                             {"GB", 1e9},
                                             {"TB", 1e12}}};
constexpr std::array<Unit, 5> kTimeUnits = {{{"ns", 1}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};

// nullopt unless `text` is a number that is not negative, with one of `units` after it.
template <size_t N>
std::optional<double> ParseQuantity(std::string_view text, const std::array<Unit, N>& units) {
  const size_t end = text.find_first_not_of("0123456789.");
  double number = 0;
  if (end == 0 || end == std::string_view::npos || !absl::SimpleAtod(std::string(text.substr(0, end)), &number))
    return std::nullopt;
  std::string_view unit = text.substr(end);
  if (unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : units) {
    if (unit == known.name) return number * known.factor;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  const auto bytes = ParseQuantity(text, kByteUnits);
  if (!bytes || *bytes > 0x1p62) {
    return absl::InvalidArgumentError(
        Cat("\"", text, "\" is no size; write a number with a unit: B, KiB, MiB, GiB or TiB, as in \"64MiB\""));
  }
  return static_cast<uint64_t>(std::llround(*bytes));
}

absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  constexpr double kYear = 366 * 24 * 3600e9;
  const auto nanoseconds = ParseQuantity(text, kTimeUnits);
  if (!nanoseconds || *nanoseconds > kYear) {
    return absl::InvalidArgumentError(
        Cat("\"", text, "\" is no duration; write a number with a unit: ms, s, m or h, as in \"5s\""));
  }
  return std::chrono::nanoseconds(std::llround(*nanoseconds));
}

std::string FormatBytes(uint64_t bytes) {
  std::string_view unit = "B";
  for (const std::string_view larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = larger;
  }
  return Cat(bytes, unit);
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  const auto nanoseconds = duration.count();
  if (nanoseconds % 1'000'000'000 == 0) return Cat(nanoseconds / 1'000'000'000, "s");
  if (nanoseconds % 1'000'000 == 0) return Cat(nanoseconds / 1'000'000, "ms");
  return Cat(nanoseconds, "ns");
}

}  // namespace flagos::daemon
