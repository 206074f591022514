// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/telemetry.h"

#include <algorithm>
#include <cmath>

#include "proto/wire/types.h"

namespace flagos {
namespace {

constexpr double kLargest = 1e9;  // of a temperature, a power or a clock
constexpr uint64_t kNotTold = ~uint64_t{0};

// The one list of figures, in the order of their bits.
template <class Reading, class Visitor>
void VisitFigures(Reading& reading, Visitor visit) {
  visit(reading.utilisation);
  visit(reading.memory_utilisation);
  visit(reading.memory_used);
  visit(reading.memory_total);
  visit(reading.temperature);
  visit(reading.power);
  visit(reading.power_limit);
  visit(reading.sm_clock);
  visit(reading.sm_clock_max);
  visit(reading.memory_clock);
  visit(reading.memory_clock_max);
  visit(reading.clocks_held);
  visit(reading.ecc_corrected);
  visit(reading.ecc_uncorrected);
  visit(reading.compute_mode);
  visit(reading.mig);
  visit(reading.driver);
}

uint32_t MaskOf(const DeviceReading& reading) {
  uint32_t mask = 0, bit = 1;
  VisitFigures(reading, [&](const auto& figure) {
    if (figure.has_value()) mask |= bit;
    bit <<= 1;
  });
  return mask;
}

void Put(ByteWriter& out, double value) { out.put(value); }
void Put(ByteWriter& out, uint64_t value) { out.put(value); }
void Put(ByteWriter& out, bool value) { out.put(static_cast<uint8_t>(value)); }
void Put(ByteWriter& out, const std::string& value) { out.put_string(CutText(value, kMaxReadingText)); }

void Get(ByteReader& in, double& value) {
  value = in.get<double>();
  if (!std::isfinite(value) || std::abs(value) > kLargest) in.fail();
}
void Get(ByteReader& in, uint64_t& value) { value = in.get<uint64_t>(); }
void Get(ByteReader& in, bool& value) {
  const auto byte = in.get<uint8_t>();
  if (byte > 1) in.fail();
  value = byte == 1;
}
void Get(ByteReader& in, std::string& value) { value = in.get_string(kMaxReadingText); }

bool IsRatio(const std::optional<double>& value) { return !value || (*value >= 0 && *value <= 1); }

void EncodeReading(ByteWriter& out, const DeviceReading& reading) {
  out.append(reading.uuid.data(), reading.uuid.size());
  out.put(MaskOf(reading));
  VisitFigures(reading, [&](const auto& figure) {
    if (figure) Put(out, *figure);
  });
  const size_t processes = std::min(reading.processes.size(), kMaxReadingProcesses);
  out.put(static_cast<uint32_t>(processes));
  for (const DeviceProcess& process : std::span(reading.processes).first(processes)) {
    out.put(process.pid);
    out.put(process.memory.value_or(kNotTold));
  }
}

DeviceReading DecodeReading(ByteReader& in) {
  DeviceReading reading;
  reading.uuid = in.get<DeviceUuid>();
  auto mask = in.get<uint32_t>();
  VisitFigures(reading, [&](auto& figure) {
    if ((mask & 1) != 0) Get(in, figure.emplace());
    mask >>= 1;
  });
  const auto processes = in.get<uint32_t>();
  if (mask != 0 || processes > kMaxReadingProcesses) in.fail();
  if (!IsRatio(reading.utilisation) || !IsRatio(reading.memory_utilisation)) in.fail();
  for (uint32_t i = 0; in.ok() && i < processes; ++i) {
    DeviceProcess& process = reading.processes.emplace_back();
    process.pid = in.get<uint32_t>();
    if (const auto memory = in.get<uint64_t>(); memory != kNotTold) process.memory = memory;
  }
  return reading;
}

}  // namespace

void EncodeReadings(ByteWriter& out, std::span<const DeviceReading> readings) {
  out.put(MonitorMessageKind::kReadings);
  out.put(static_cast<uint32_t>(readings.size()));
  for (const DeviceReading& reading : readings) EncodeReading(out, reading);
}

void EncodeMonitorFailure(ByteWriter& out, std::string_view why) {
  out.put(MonitorMessageKind::kFailure);
  out.put_string(CutText(why, kMaxMonitorFailure));
}

Result<MonitorMessage> DecodeMonitorMessage(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  MonitorMessage message;
  switch (in.get<MonitorMessageKind>()) {
    case MonitorMessageKind::kReadings: {
      const auto count = in.get<uint32_t>();
      if (count > kMaxDevices) in.fail();
      for (uint32_t i = 0; in.ok() && i < count; ++i) message.readings.push_back(DecodeReading(in));
      break;
    }
    case MonitorMessageKind::kFailure:
      message.failure = in.get_string(kMaxMonitorFailure);
      if (message.failure.empty()) in.fail();
      break;
    default: in.fail();
  }
  if (!in.done()) {
    return MakeError(ErrorCode::kMalformed,
                     "what flagos-monitor sent does not decode; install flagosd and flagos-monitor of one version");
  }
  return message;
}

}  // namespace flagos
