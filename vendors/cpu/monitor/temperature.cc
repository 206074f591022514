// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/monitor/temperature.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace flagos::cpu {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kDrivers = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
constexpr double kColdest = -100, kHottest = 200;  // what lies beyond is no measurement

std::vector<fs::path> Entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  return entries;
}

std::string Word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// Takes the file's thousandths of a degree into account.
void Take(const fs::path& file, std::optional<double>& hottest) {
  double thousandths = 0;
  if (!(std::ifstream(file) >> thousandths)) return;
  const double degrees = thousandths / 1000;
  if (degrees > kColdest && degrees < kHottest) hottest = std::max(hottest.value_or(kColdest), degrees);
}

bool IsSensor(const std::string& file) { return file.starts_with("temp") && file.ends_with("_input"); }

bool IsProcessorZone(const std::string& type) { return type == "x86_pkg_temp" || type.starts_with("cpu"); }

}  // namespace

std::optional<double> ReadTemperature(const std::string& sys) {
  std::optional<double> hottest;
  for (const fs::path& chip : Entries(fs::path(sys) / "class/hwmon")) {
    if (std::ranges::find(kDrivers, Word(chip / "name")) == kDrivers.end()) continue;
    for (const fs::path& file : Entries(chip)) {
      if (IsSensor(file.filename())) Take(file, hottest);
    }
  }
  if (hottest) return hottest;
  for (const fs::path& zone : Entries(fs::path(sys) / "class/thermal")) {
    if (IsProcessorZone(Word(zone / "type"))) Take(zone / "temp", hottest);
  }
  return hottest;
}

}  // namespace flagos::cpu
