// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/daemon_process.h"
#include "vendors/cpu/identity.h"
#include "vendors/cpu/monitor/monitor.h"
#include "vendors/cpu/monitor/temperature.h"

namespace flagos::cpu {
namespace {

constexpr char kMeminfo[] =
    "MemTotal:       24683656 kB\nMemFree:        19788852 kB\nMemAvailable:   23454232 kB\nBuffers: 60408 kB\n";

TEST(ProcessorTimes, CountWaitingAsIdleAndGuestsOnce) {
  const auto times = ParseProcessorTimes("cpu  100 1 20 800 50 2 3 4 90 90\ncpu0 1 1 1 1\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->busy, 100u + 1 + 20 + 2 + 3 + 4);
  EXPECT_EQ(times->total, times->busy + 800 + 50);
  EXPECT_TRUE(ParseProcessorTimes("cpu 1 2 3 4")) << "an old kernel";
  for (const char* const text : {"", "cpu", "cpu \n", "cpu0 1 2 3 4\n", "cpu 1 2 3\n", "cpu a b c d\n", "intr 5\n"}) {
    EXPECT_FALSE(ParseProcessorTimes(text)) << text;
  }
}

TEST(ProcessorTimes, TellTheShareBetweenTwoReadings) {
  EXPECT_EQ(Utilisation({.busy = 100, .total = 200}, {.busy = 130, .total = 300}), 0.3);
  EXPECT_EQ(Utilisation({.busy = 100, .total = 200}, {.busy = 100, .total = 200}), std::nullopt);
  EXPECT_EQ(Utilisation({.busy = 100, .total = 200}, {.busy = 90, .total = 210}), 0.0) << "counters went back";
  EXPECT_EQ(Utilisation({.busy = 100, .total = 200}, {.busy = 50, .total = 100}), std::nullopt);
}

TEST(MemoryFile, IsReadInBytes) {
  const auto memory = ParseMemory(kMeminfo);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, uint64_t{24683656} << 10);
  EXPECT_EQ(memory->used, uint64_t{24683656 - 23454232} << 10);
  for (const char* const text :
       {"", "MemTotal: 1 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n", "MemTotal: 1 MB\nMemAvailable: 1 kB\n",
        "MemTotal:\nMemAvailable: 1 kB", "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB\n",
        "MemTotal: 9999999999999999999 kB\nMemAvailable: 1 kB\n"}) {
    EXPECT_FALSE(ParseMemory(text)) << text;
  }
  EXPECT_EQ(ParseMemory("MemTotal: 1 kB\nMemAvailable: 2 kB")->used, 0u);
}

TEST(Temperature, IsTheHottestOfTheProcessorsSensors) {
  const testing::TemporaryFolder sys;
  EXPECT_EQ(ReadTemperature(sys.path()), std::nullopt);
  sys.write("class/thermal/thermal_zone0/type", "acpitz\n");
  sys.write("class/thermal/thermal_zone0/temp", "99000\n");
  EXPECT_EQ(ReadTemperature(sys.path()), std::nullopt) << "not a processor's";
  sys.write("class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  sys.write("class/thermal/thermal_zone1/temp", "45500\n");
  EXPECT_EQ(ReadTemperature(sys.path()), 45.5);
  sys.write("class/hwmon/hwmon0/name", "nvme\n");
  sys.write("class/hwmon/hwmon0/temp1_input", "80000\n");
  EXPECT_EQ(ReadTemperature(sys.path()), 45.5);
  sys.write("class/hwmon/hwmon1/name", "coretemp\n");
  sys.write("class/hwmon/hwmon1/temp1_input", "51000\n");
  sys.write("class/hwmon/hwmon1/temp2_input", "53000\n");
  sys.write("class/hwmon/hwmon1/temp1_max", "100000\n");
  sys.write("class/hwmon/hwmon1/temp3_input", "none\n");
  sys.write("class/hwmon/hwmon1/temp4_input", "900000\n");
  EXPECT_EQ(ReadTemperature(sys.path()), 53.0);
}

TEST(CpuMonitor, TellsTheSameOfEachDevice) {
  const testing::TemporaryFolder proc;
  proc.write("stat", "cpu 100 0 0 900 0 0 0 0\n");
  proc.write("meminfo", kMeminfo);
  CpuMonitor monitor(proc.path(), proc.path());
  ASSERT_TRUE(monitor.start({{"devices", "2"}, {"threads", "4"}}).ok());
  proc.write("stat", "cpu 150 0 0 950 0 0 0 0\n");
  const auto readings = monitor.read();
  ASSERT_TRUE(readings.ok());
  ASSERT_EQ(readings.value().size(), 2u);
  for (uint32_t index = 0; index < 2; ++index) {
    const DeviceReading& reading = readings.value()[index];
    EXPECT_EQ(reading.uuid, UuidOf(index));
    EXPECT_EQ(reading.utilisation, 0.5);
    EXPECT_EQ(reading.memory_total, uint64_t{24683656} << 10);
    EXPECT_FALSE(reading.temperature || reading.power || reading.ecc_corrected);
  }
  EXPECT_FALSE(monitor.read().value()[0].utilisation) << "no time has passed";
}

TEST(CpuMonitor, RefusesAMachineWithoutProcAndNumbersThatAreNone) {
  const testing::TemporaryFolder proc;
  CpuMonitor monitor(proc.path(), proc.path());
  EXPECT_FALSE(monitor.start({}).ok());
  EXPECT_FALSE(CpuMonitor().start({{"devices", "many"}}).ok());
  CpuMonitor real;
  EXPECT_TRUE(real.start({}).ok());
  EXPECT_TRUE(real.read().value().at(0).memory_used);
}

}  // namespace
}  // namespace flagos::cpu
