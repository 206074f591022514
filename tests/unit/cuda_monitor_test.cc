// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "vendors/cuda/monitor/figures.h"
#include "vendors/cuda/monitor/monitor.h"
#include "vendors/cuda/monitor/uuid.h"

extern "C" flagos::vendor::MonitorEntry flagos_monitor();

namespace flagos::cuda {
namespace {

constexpr char kUuid[] = "GPU-01234567-89ab-cdef-0123-456789ABCDEF";
constexpr DeviceUuid kUuidBytes = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                   0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};

TEST(Uuid, IsReadAsCudaHasIt) {
  EXPECT_EQ(ParseUuid(kUuid), kUuidBytes);
  const std::string good = kUuid;
  for (const std::string& text :
       {std::string(), good.substr(4), good.substr(0, good.size() - 1), good + "0", "MIG" + good.substr(3),
        good.substr(0, 20) + "g" + good.substr(21), good.substr(0, 12) + "0" + good.substr(13),
        good.substr(0, 4) + "-" + good.substr(5)}) {
    EXPECT_FALSE(ParseUuid(text)) << text;
  }
}

TEST(Clocks, AreHeldByWhatTheBitsSay) {
  EXPECT_EQ(ClocksHeldBy(0), "none");
  EXPECT_EQ(ClocksHeldBy(1), "idle");
  EXPECT_EQ(ClocksHeldBy(0x24), "power cap, heat");
  EXPECT_EQ(ClocksHeldBy(1ull << 40), "unknown");
  EXPECT_LE(ClocksHeldBy(~0ull).size(), kMaxReadingText);
}

template <size_t N>
NvmlReturn Write(const char (&text)[N], char* to, unsigned size) {
  if (size < N) return kNvmlInsufficientSize;
  std::memcpy(to, text, N);
  return kNvmlSuccess;
}

template <class T>
NvmlReturn Give(T* to, T value) {
  *to = value;
  return kNvmlSuccess;
}

// A driver with one GPU, and one that fell off the bus.
Nvml FakeNvml() {
  Nvml nvml;
  nvml.init = [] { return kNvmlSuccess; };
  nvml.error_text = [](NvmlReturn) { return "so it is"; };
  nvml.driver_version = [](char* to, unsigned size) { return Write("580.65.06", to, size); };
  nvml.device_count = [](unsigned* count) { return Give(count, 2u); };
  nvml.device = [](unsigned index, NvmlDevice** device) {
    *device = nullptr;
    return index == 0 ? NvmlReturn{15} : kNvmlSuccess;
  };
  nvml.uuid = [](NvmlDevice*, char* to, unsigned size) { return Write(kUuid, to, size); };
  nvml.memory = [](NvmlDevice*, NvmlMemory* memory) { return Give(memory, NvmlMemory{100, 40, 60}); };
  nvml.memory_v2 = [](NvmlDevice*, NvmlMemoryV2* memory) {
    if (memory->version != (40u | 2u << 24)) return NvmlReturn{25};
    memory->total = 100;
    memory->used = 50;
    return kNvmlSuccess;
  };
  nvml.utilization = [](NvmlDevice*, NvmlUtilization* used) { return Give(used, NvmlUtilization{42, 7}); };
  nvml.temperature = [](NvmlDevice*, int sensor, unsigned* to) { return sensor == 0 ? Give(to, 41u) : NvmlReturn{2}; };
  nvml.power = [](NvmlDevice*, unsigned* to) { return Give(to, 65'250u); };
  nvml.power_limit = [](NvmlDevice*, unsigned*) { return kNvmlNotSupported; };
  nvml.clock = [](NvmlDevice*, int clock, unsigned* to) { return Give(to, clock == kNvmlClockSm ? 345u : 3201u); };
  nvml.max_clock = [](NvmlDevice*, int clock, unsigned* to) { return Give(to, clock == kNvmlClockSm ? 1980u : 3202u); };
  nvml.ecc_errors = [](NvmlDevice*, int kind, int counter, unsigned long long* to) {
    return counter == kNvmlVolatile ? Give(to, kind == kNvmlCorrected ? 3ull : 1ull) : NvmlReturn{2};
  };
  nvml.processes = [](NvmlDevice*, unsigned* count, NvmlProcess* processes) {
    processes[0] = {.pid = 1, .used_memory = kNvmlNoValue, .gpu_instance = 0, .compute_instance = 0};
    processes[1] = {.pid = 2, .used_memory = 7, .gpu_instance = 0, .compute_instance = 0};
    return Give(count, 2u);
  };
  nvml.compute_mode = [](NvmlDevice*, int* mode) { return Give(mode, 3); };
  return nvml;
}

TEST(CudaMonitor, ReadsWhatTheDriverTells) {
  CudaMonitor monitor(FakeNvml());
  ASSERT_TRUE(monitor.start({}).ok());
  const auto readings = monitor.read();
  ASSERT_TRUE(readings.ok());
  ASSERT_EQ(readings.value().size(), 1u) << "the lost one hides no other";
  const DeviceReading& reading = readings.value()[0];
  EXPECT_EQ(reading.uuid, kUuidBytes);
  EXPECT_EQ(reading.driver, "580.65.06");
  EXPECT_EQ(reading.utilisation, 0.42);
  EXPECT_EQ(reading.memory_utilisation, 0.07);
  EXPECT_EQ(reading.memory_used, 50u) << "without what the driver keeps";
  EXPECT_EQ(reading.memory_total, 100u);
  EXPECT_EQ(reading.temperature, 41);
  EXPECT_EQ(reading.power, 65.25);
  EXPECT_EQ(reading.sm_clock, 345);
  EXPECT_EQ(reading.sm_clock_max, 1980);
  EXPECT_EQ(reading.memory_clock, 3201);
  EXPECT_EQ(reading.memory_clock_max, 3202);
  EXPECT_EQ(reading.ecc_corrected, 3u);
  EXPECT_EQ(reading.ecc_uncorrected, 1u);
  EXPECT_EQ(reading.compute_mode, "exclusive process");
  EXPECT_EQ(reading.processes, (std::vector<DeviceProcess>{{2, 7}, {1, std::nullopt}}));
  EXPECT_FALSE(reading.power_limit) << "not supported";
  EXPECT_FALSE(reading.clocks_held || reading.mig) << "not in this driver";
}

TEST(CudaMonitor, TakesTheOlderMemoryWhereThereIsNoNewer) {
  Nvml nvml = FakeNvml();
  nvml.memory_v2 = nullptr;
  EXPECT_EQ(ReadFigures(nvml, nullptr).memory_used, 60u);
  EXPECT_EQ(ReadFigures(Nvml(), nullptr), DeviceReading()) << "a driver that tells nothing";
}

TEST(CudaMonitor, TellsWhyItCannotRead) {
  const auto missing = LoadNvml("libflagos-no-such-nvml.so");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("libflagos-no-such-nvml.so"), std::string::npos) << missing.error().message;
  EXPECT_NE(missing.error().message.find("install"), std::string::npos);
  const auto foreign = LoadNvml("libc.so.6");
  ASSERT_FALSE(foreign.ok());
  EXPECT_NE(foreign.error().message.find("is no NVML"), std::string::npos) << foreign.error().message;

  Nvml nvml = FakeNvml();
  nvml.init = [] { return kNvmlDriverNotLoaded; };
  EXPECT_NE(CudaMonitor(nvml).start({}).message.find("\"so it is\"; load the driver"), std::string::npos);
  nvml.init = [] { return kNvmlSuccess; };
  nvml.device_count = [](unsigned*) { return NvmlReturn{999}; };
  CudaMonitor monitor(nvml);
  ASSERT_TRUE(monitor.start({}).ok());
  EXPECT_FALSE(monitor.read().ok());
}

TEST(CudaMonitor, IsRegistered) {
  const auto entry = flagos_monitor();
  EXPECT_EQ(entry.version, vendor::kMonitorVersion);
  EXPECT_NE(std::unique_ptr<vendor::Monitor>(entry.create()), nullptr);
}

}  // namespace
}  // namespace flagos::cuda
