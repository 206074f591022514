// SPDX-License-Identifier: Apache-2.0
// What the kernel tells of processors and memory, from the text of its files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace flagos::cpu {

// Of all processors together since the machine started, in ticks.
struct ProcessorTimes {
  uint64_t busy = 0;
  uint64_t total = 0;
};
// The first line of /proc/stat; nullopt where it is not that.
std::optional<ProcessorTimes> ParseProcessorTimes(std::string_view stat);

// The share of the time between two readings in which processors were busy; nullopt: no time has passed.
std::optional<double> Utilisation(const ProcessorTimes& before, const ProcessorTimes& now);

struct Memory {
  uint64_t used = 0;  // bytes that programs could not have without taking them from others
  uint64_t total = 0;
};
// /proc/meminfo; nullopt where a needed line is missing or wrong.
std::optional<Memory> ParseMemory(std::string_view meminfo);

}  // namespace flagos::cpu
