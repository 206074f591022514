// SPDX-License-Identifier: Apache-2.0
// Reading the options that every vendor may have, with the same errors for all.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/error.h"
#include "vendors/interface/vendor.h"

namespace flagos::vendor {

// The number that option `name` says, from 1 to `most`; `otherwise` where the option is not given.
inline Result<uint64_t> ReadNumber(const Options& options, std::string_view vendor, const std::string& name,
                                   uint64_t most, uint64_t otherwise) {
  const auto found = options.values.find(name);
  if (found == options.values.end()) return otherwise;
  const std::string& text = found->second;
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number == 0 || number > most) {
    return MakeError(ErrorCode::kValue, "vendor " + std::string(vendor) + ": option " + name + " is \"" + text +
                                            "\", which is no number from 1 to " + std::to_string(most) +
                                            "; correct it in flagosd's configuration");
  }
  return number;
}

// The devices that the session sees, of `present` on the node: those asked for, or all.
inline Result<std::vector<uint32_t>> ChooseDevices(const Options& options, std::string_view vendor, uint64_t present) {
  std::vector<uint32_t> chosen = options.devices;
  for (uint32_t index = 0; options.devices.empty() && index < present; ++index) chosen.push_back(index);
  for (const uint32_t index : chosen) {
    if (index < present) continue;
    return MakeError(ErrorCode::kNotFound, "vendor " + std::string(vendor) + " has no device " + std::to_string(index) +
                                               ", only " + std::to_string(present) + "; raise its option devices");
  }
  return chosen;
}

}  // namespace flagos::vendor
