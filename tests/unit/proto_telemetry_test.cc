// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/telemetry.h"

#include <gtest/gtest.h>

#include <limits>

#include "proto/wire/types.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

DeviceReading Full() {
  DeviceReading reading;
  reading.uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  reading.utilisation = 0.5;
  reading.memory_utilisation = 1.0;
  reading.memory_used = 1u << 30;
  reading.memory_total = uint64_t{141} << 30;
  reading.temperature = -3;
  reading.power = 65.25;
  reading.power_limit = 700;
  reading.sm_clock = 345;
  reading.sm_clock_max = 1980;
  reading.memory_clock = 3201;
  reading.memory_clock_max = 3202;
  reading.clocks_held = "power cap";
  reading.ecc_corrected = 3;
  reading.ecc_uncorrected = 0;
  reading.compute_mode = "default";
  reading.mig = false;
  reading.driver = "580.65.06";
  reading.processes = {{4711, 1u << 20}, {4712, std::nullopt}};
  return reading;
}

std::vector<std::byte> Encoded(const std::vector<DeviceReading>& readings) {
  ByteWriter out;
  EncodeReadings(out, readings);
  return {out.bytes().begin(), out.bytes().end()};
}

bool Decodes(const DeviceReading& reading) { return DecodeMonitorMessage(Encoded({reading})).ok(); }

TEST(Readings, RoundTripAndRefuseEveryTruncation) {
  DeviceReading some;
  some.temperature = 41;
  some.mig = true;
  const std::vector<DeviceReading> readings = {Full(), DeviceReading(), some};
  const auto bytes = Encoded(readings);
  const auto back = DecodeMonitorMessage(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().readings, readings);
  EXPECT_TRUE(back.value().failure.empty());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeMonitorMessage(std::span(bytes).first(size)).ok()) << size;
  }
  auto longer = bytes;
  longer.push_back({});
  EXPECT_FALSE(DecodeMonitorMessage(longer).ok()) << "bytes that nobody explains";
}

TEST(Readings, RefuseNumbersThatCannotBe) {
  DeviceReading reading;
  for (const double ratio : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    reading.utilisation = ratio;
    EXPECT_FALSE(Decodes(reading)) << ratio;
  }
  reading.utilisation = 1;
  EXPECT_TRUE(Decodes(reading));
  for (const double power : {std::numeric_limits<double>::infinity(), -1e300}) {
    reading.power = power;
    EXPECT_FALSE(Decodes(reading)) << power;
  }
}

TEST(Readings, RefuseCountsMasksAndSizesThatCannotBe) {
  using testing::Bytes;
  using testing::Join;
  constexpr uint8_t kReadings = 1;
  const auto head = Join(Bytes(kReadings, uint32_t{1}), Bytes(DeviceUuid{}));
  EXPECT_TRUE(DecodeMonitorMessage(Join(head, Bytes(uint32_t{0}, uint32_t{0}))).ok());
  EXPECT_FALSE(DecodeMonitorMessage(Join(head, Bytes(uint32_t{1} << 17, uint32_t{0}))).ok()) << "an unknown figure";
  EXPECT_FALSE(DecodeMonitorMessage(Join(head, Bytes(uint32_t{0}, ~uint32_t{0}))).ok()) << "processes";
  EXPECT_FALSE(DecodeMonitorMessage(Join(head, Bytes(uint32_t{1} << 15, uint8_t{2}, uint32_t{0}))).ok()) << "a bool";
  EXPECT_FALSE(DecodeMonitorMessage(Join(head, Bytes(uint32_t{1} << 16, ~uint32_t{0}, uint32_t{0}))).ok()) << "a text";
  EXPECT_FALSE(DecodeMonitorMessage(Bytes(kReadings, kMaxDevices + 1)).ok());
  EXPECT_FALSE(DecodeMonitorMessage(Bytes(kReadings, ~uint32_t{0})).ok());
  EXPECT_FALSE(DecodeMonitorMessage(Bytes(uint8_t{0}, uint32_t{0})).ok()) << "an unknown kind";
  EXPECT_FALSE(DecodeMonitorMessage(Bytes(uint8_t{3}, uint32_t{0})).ok());
  EXPECT_FALSE(DecodeMonitorMessage({}).ok());
}

TEST(Readings, TheLargestFitsIntoAMessage) {
  DeviceReading large = Full();
  large.clocks_held = large.compute_mode = large.driver = std::string(1000, 'x');
  large.processes.assign(1000, {1, 2});
  const auto bytes = Encoded(std::vector<DeviceReading>(kMaxDevices, large));
  EXPECT_LE(bytes.size(), kMaxMonitorMessage);
  const auto back = DecodeMonitorMessage(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().readings.back().driver->size(), kMaxReadingText);
  EXPECT_EQ(back.value().readings.back().processes.size(), kMaxReadingProcesses);
}

TEST(MonitorFailure, IsToldAndCut) {
  ByteWriter out;
  EncodeMonitorFailure(out, "no driver; install it");
  const auto back = DecodeMonitorMessage(out.bytes());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().failure, "no driver; install it");
  for (size_t size = 0; size < out.size(); ++size) EXPECT_FALSE(DecodeMonitorMessage(out.bytes().first(size)).ok());
  out.clear();
  EncodeMonitorFailure(out, std::string(5000, 'x'));
  EXPECT_EQ(DecodeMonitorMessage(out.bytes()).value().failure.size(), kMaxMonitorFailure);
  out.clear();
  EncodeMonitorFailure(out, "");
  EXPECT_FALSE(DecodeMonitorMessage(out.bytes()).ok()) << "a failure has a reason";
}

}  // namespace
}  // namespace flagos
