// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/monitor/nvml.h"

#include <dlfcn.h>

namespace flagos::cuda {
namespace {

template <class Function>
void Find(void* library, Function& function, const char* name) {
  if (function == nullptr) function = reinterpret_cast<Function>(::dlsym(library, name));
}

const char* Advice(NvmlReturn status) {
  switch (status) {
    case kNvmlDriverNotLoaded: return "load the driver: modprobe nvidia";
    case kNvmlVersionMismatch: return "the driver was upgraded: load it anew, or restart the machine";
    default: return "compare with `nvidia-smi`";
  }
}

}  // namespace

Result<Nvml> LoadNvml(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    return MakeError(ErrorCode::kUnavailable,
                     "figures of GPUs cannot be read: " + std::string(why == nullptr ? library : why) +
                         "; install the NVIDIA driver with its management library, and give it to the container");
  }
  Nvml nvml;
  Find(handle, nvml.init, "nvmlInit_v2");
  Find(handle, nvml.error_text, "nvmlErrorString");
  Find(handle, nvml.driver_version, "nvmlSystemGetDriverVersion");
  Find(handle, nvml.device_count, "nvmlDeviceGetCount_v2");
  Find(handle, nvml.device, "nvmlDeviceGetHandleByIndex_v2");
  Find(handle, nvml.uuid, "nvmlDeviceGetUUID");
  Find(handle, nvml.memory, "nvmlDeviceGetMemoryInfo");
  Find(handle, nvml.memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  Find(handle, nvml.utilization, "nvmlDeviceGetUtilizationRates");
  Find(handle, nvml.temperature, "nvmlDeviceGetTemperature");
  Find(handle, nvml.power, "nvmlDeviceGetPowerUsage");
  Find(handle, nvml.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  Find(handle, nvml.clock, "nvmlDeviceGetClockInfo");
  Find(handle, nvml.max_clock, "nvmlDeviceGetMaxClockInfo");
  Find(handle, nvml.clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  Find(handle, nvml.clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");  // its name before driver 535
  Find(handle, nvml.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  Find(handle, nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  Find(handle, nvml.compute_mode, "nvmlDeviceGetComputeMode");
  Find(handle, nvml.mig_mode, "nvmlDeviceGetMigMode");
  if (nvml.init == nullptr || nvml.device_count == nullptr || nvml.device == nullptr || nvml.uuid == nullptr) {
    return MakeError(ErrorCode::kVersion, "figures of GPUs cannot be read: " + library +
                                              " is no NVML, or too old; install a driver of version 580 or later");
  }
  return nvml;
}

Error NvmlError(const Nvml& nvml, NvmlReturn status, const std::string& what) {
  const char* const text = nvml.error_text == nullptr ? nullptr : nvml.error_text(status);
  const std::string why = text == nullptr ? "error " + std::to_string(status) : text;
  return MakeError(ErrorCode::kUnavailable, what + ": NVML says \"" + why + "\"; " + Advice(status));
}

}  // namespace flagos::cuda
