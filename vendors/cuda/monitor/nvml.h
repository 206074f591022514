// SPDX-License-Identifier: Apache-2.0
// The part of NVML, the driver's management library, that is used here. Its header comes with the CUDA toolkit, which
// no build of ours needs, so what it fixes for good is declared again: names, numbers and layouts are those of NVIDIA's
// NVML API reference. The library itself comes with the driver and is looked up when the monitor starts.
#pragma once

#include <string>

#include "proto/wire/error.h"

namespace flagos::cuda {

struct NvmlDevice;  // opaque

enum NvmlReturn : int {
  kNvmlSuccess = 0,
  kNvmlNotSupported = 3,
  kNvmlInsufficientSize = 7,
  kNvmlDriverNotLoaded = 9,
  kNvmlVersionMismatch = 18,
};

struct NvmlMemory {
  unsigned long long total, free, used;
};
// The second version counts what the driver keeps for itself apart from what is used.
struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kNvmlMemoryV2 = sizeof(NvmlMemoryV2) | 2u << 24;

struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
struct NvmlProcess {
  unsigned pid;
  unsigned long long used_memory;  // kNvmlNoValue: not told
  unsigned gpu_instance, compute_instance;
};
inline constexpr unsigned long long kNvmlNoValue = ~0ull;

enum NvmlClock : int { kNvmlClockSm = 1, kNvmlClockMemory = 2 };
enum NvmlEccKind : int { kNvmlCorrected = 0, kNvmlUncorrected = 1 };
inline constexpr int kNvmlVolatile = 0;  // of counters: since the driver was loaded
inline constexpr int kNvmlTemperatureGpu = 0;
inline constexpr unsigned kNvmlTextSize = 96;

// Its functions; null where the driver's library does not have one.
struct Nvml {
  NvmlReturn (*init)() = nullptr;
  const char* (*error_text)(NvmlReturn) = nullptr;
  NvmlReturn (*driver_version)(char*, unsigned size) = nullptr;
  NvmlReturn (*device_count)(unsigned*) = nullptr;
  NvmlReturn (*device)(unsigned index, NvmlDevice**) = nullptr;
  NvmlReturn (*uuid)(NvmlDevice*, char*, unsigned size) = nullptr;
  NvmlReturn (*memory)(NvmlDevice*, NvmlMemory*) = nullptr;
  NvmlReturn (*memory_v2)(NvmlDevice*, NvmlMemoryV2*) = nullptr;
  NvmlReturn (*utilization)(NvmlDevice*, NvmlUtilization*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice*, int sensor, unsigned* celsius) = nullptr;
  NvmlReturn (*power)(NvmlDevice*, unsigned* milliwatts) = nullptr;
  NvmlReturn (*power_limit)(NvmlDevice*, unsigned* milliwatts) = nullptr;
  NvmlReturn (*clock)(NvmlDevice*, int clock, unsigned* mhz) = nullptr;
  NvmlReturn (*max_clock)(NvmlDevice*, int clock, unsigned* mhz) = nullptr;
  NvmlReturn (*clock_reasons)(NvmlDevice*, unsigned long long* bits) = nullptr;
  NvmlReturn (*ecc_errors)(NvmlDevice*, int kind, int counter, unsigned long long* count) = nullptr;
  NvmlReturn (*processes)(NvmlDevice*, unsigned* count, NvmlProcess*) = nullptr;
  NvmlReturn (*compute_mode)(NvmlDevice*, int*) = nullptr;
  NvmlReturn (*mig_mode)(NvmlDevice*, unsigned* current, unsigned* pending) = nullptr;
};

// Loads the library and looks its functions up; initialises nothing. The error says why figures cannot be read.
Result<Nvml> LoadNvml(const std::string& library = "libnvidia-ml.so.1");

// A failed call as an error: what failed, NVML's reason, what to do.
Error NvmlError(const Nvml& nvml, NvmlReturn status, const std::string& what);

}  // namespace flagos::cuda
