// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/monitor/proc_files.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace flagos::cpu {
namespace {

// The number at the start of `text`, behind blanks, which is taken off.
std::optional<uint64_t> TakeNumber(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  return number;
}

// "MemTotal:  24683656 kB" as bytes.
std::optional<uint64_t> Line(std::string_view meminfo, std::string_view name) {
  while (!meminfo.empty()) {
    std::string_view line = meminfo.substr(0, meminfo.find('\n'));
    meminfo.remove_prefix(std::min(line.size() + 1, meminfo.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    const auto kibibytes = TakeNumber(line);
    if (!kibibytes || line != " kB" || *kibibytes > (uint64_t{1} << 50)) return std::nullopt;
    return *kibibytes << 10;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ProcessorTimes> ParseProcessorTimes(std::string_view stat) {
  constexpr std::string_view kName = "cpu ";
  if (!stat.starts_with(kName)) return std::nullopt;
  stat = stat.substr(kName.size(), std::min(stat.find('\n'), stat.size()) - kName.size());
  // user nice system idle iowait irq softirq steal; what follows, of guests, is in user and nice already.
  std::array<uint64_t, 8> times{};
  size_t count = 0;
  for (; count < times.size(); ++count) {
    const auto time = TakeNumber(stat);
    if (!time) break;
    times[count] = *time;
  }
  constexpr size_t kIdle = 3, kWaiting = 4;
  if (count <= kIdle) return std::nullopt;
  ProcessorTimes sum;
  for (size_t i = 0; i < count; ++i) {
    sum.total += times[i];
    if (i != kIdle && i != kWaiting) sum.busy += times[i];
  }
  return sum;
}

std::optional<double> Utilisation(const ProcessorTimes& before, const ProcessorTimes& now) {
  if (now.total <= before.total) return std::nullopt;
  const auto busy = static_cast<double>(now.busy - std::min(before.busy, now.busy));
  return std::min(busy / static_cast<double>(now.total - before.total), 1.0);
}

std::optional<Memory> ParseMemory(std::string_view meminfo) {
  const auto total = Line(meminfo, "MemTotal:");
  const auto available = Line(meminfo, "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return Memory{.used = *total - std::min(*total, *available), .total = *total};
}

}  // namespace flagos::cpu
