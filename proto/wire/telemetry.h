// SPDX-License-Identifier: Apache-2.0
// Figures of devices, as flagos-monitor reads them and sends them to flagosd: one message a reading.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/bytes.h"
#include "proto/wire/error.h"

namespace flagos {

using DeviceUuid = std::array<uint8_t, 16>;  // that of a DeviceRecord

// A process that holds memory of a device.
struct DeviceProcess {
  uint32_t pid = 0;
  std::optional<uint64_t> memory;  // bytes

  bool operator==(const DeviceProcess&) const = default;
};

// A device at one moment. What it does not tell is absent.
struct DeviceReading {
  DeviceUuid uuid{};
  std::optional<double> utilisation;         // 0-1: time in which it computed
  std::optional<double> memory_utilisation;  // 0-1: time in which its memory was read or written
  std::optional<uint64_t> memory_used;       // bytes, by whomever
  std::optional<uint64_t> memory_total;
  std::optional<double> temperature;  // degrees Celsius
  std::optional<double> power;        // watts
  std::optional<double> power_limit;
  std::optional<double> sm_clock;  // MHz
  std::optional<double> sm_clock_max;
  std::optional<double> memory_clock;
  std::optional<double> memory_clock_max;
  std::optional<std::string> clocks_held;   // why clocks are not higher: "power cap, heat"; "none"
  std::optional<uint64_t> ecc_corrected;    // errors since the driver was loaded
  std::optional<uint64_t> ecc_uncorrected;  // the same
  std::optional<std::string> compute_mode;  // who may use it: "default", "exclusive process", "prohibited"
  std::optional<bool> mig;                  // divided into instances
  std::optional<std::string> driver;        // its version
  std::vector<DeviceProcess> processes;

  bool operator==(const DeviceReading&) const = default;
};

inline constexpr size_t kMaxReadingText = 128;      // bytes of one text
inline constexpr size_t kMaxReadingProcesses = 64;  // of one device; others are left out
inline constexpr size_t kMaxMonitorFailure = 1024;
inline constexpr size_t kMaxMonitorMessage = 96 << 10;

// A message is a u8 kind and its body.
//   1 readings: u32 count, then for each device 16 bytes uuid, u32 mask (bit i: figure i is there, in the order of the
//     struct), the figures that are there (f64, u64, u8 for a bool, string), u32 processes, for each u32 pid and u64
//     bytes (all ones: not told)
//   2 failure: string; the monitor ends after it
enum class MonitorMessageKind : uint8_t { kReadings = 1, kFailure = 2 };

// Texts and processes beyond the limits are cut. REQUIRES readings.size() <= kMaxDevices.
void EncodeReadings(ByteWriter& out, std::span<const DeviceReading> readings);
void EncodeMonitorFailure(ByteWriter& out, std::string_view why);

struct MonitorMessage {
  std::vector<DeviceReading> readings;
  std::string failure;  // what, why, what to do; empty: these are readings
};
// Trusts nothing: counts, masks and sizes are checked, ratios are from 0 to 1, and numbers are finite. Texts may hold
// any byte.
Result<MonitorMessage> DecodeMonitorMessage(std::span<const std::byte> bytes);

}  // namespace flagos
