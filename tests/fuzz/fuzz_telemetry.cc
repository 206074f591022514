// SPDX-License-Identifier: Apache-2.0
// What flagos-monitor, or whoever took it over, could send to flagosd.
#include <algorithm>

#include "proto/wire/telemetry.h"
#include "proto/wire/types.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = flagos::DecodeMonitorMessage(std::as_bytes(std::span(data, size)));
  if (!message.ok()) return 0;
  const auto& readings = message.value().readings;
  FUZZ_CHECK(readings.size() <= flagos::kMaxDevices);
  for (const flagos::DeviceReading& reading : readings) {
    FUZZ_CHECK(!reading.utilisation || (*reading.utilisation >= 0 && *reading.utilisation <= 1));
    FUZZ_CHECK(reading.processes.size() <= flagos::kMaxReadingProcesses);
  }
  flagos::ByteWriter out;
  if (message.value().failure.empty()) {
    flagos::EncodeReadings(out, readings);
  } else {
    flagos::EncodeMonitorFailure(out, message.value().failure);
  }
  // There is one way to write what decodes.
  FUZZ_CHECK(out.size() == size && std::equal(data, data + size, reinterpret_cast<const uint8_t*>(out.data())));
  return 0;
}
