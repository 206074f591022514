// SPDX-License-Identifier: Apache-2.0
// How hot the processors are.
#pragma once

#include <optional>
#include <string>

namespace flagos::cpu {

// The hottest of the processors' sensors in degrees Celsius, of class/hwmon or else class/thermal in the folder `sys`;
// nullopt where there is none, as in most virtual machines.
std::optional<double> ReadTemperature(const std::string& sys);

}  // namespace flagos::cpu
