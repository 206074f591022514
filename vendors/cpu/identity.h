// SPDX-License-Identifier: Apache-2.0
// What names a device of this vendor, to executors and to the monitor alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "proto/wire/telemetry.h"

namespace flagos::cpu {

// `index`: the device's number on the node.
inline DeviceUuid UuidOf(uint32_t index) {
  constexpr std::string_view kName = "flagos-cpu";
  DeviceUuid uuid{};
  std::copy(kName.begin(), kName.end(), uuid.begin());
  uuid[15] = static_cast<uint8_t>(index);
  return uuid;
}

}  // namespace flagos::cpu
