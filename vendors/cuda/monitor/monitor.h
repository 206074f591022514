// SPDX-License-Identifier: Apache-2.0
// Every GPU of the node by NVML, which opens no context on any: CUDA_VISIBLE_DEVICES does not concern it.
#pragma once

#include <string>

#include "vendors/cuda/monitor/nvml.h"
#include "vendors/interface/monitor.h"

namespace flagos::cuda {

class CudaMonitor final : public vendor::Monitor {
 public:
  CudaMonitor() = default;
  explicit CudaMonitor(const Nvml& nvml) : nvml_(nvml), loaded_(true) {}

  // It has no options. Where GPUs sleep without the driver's persistence mode, this takes seconds and keeps them awake.
  Error start(const std::map<std::string, std::string>& options) override;
  Result<std::vector<DeviceReading>> read() override;

 private:
  Nvml nvml_;
  bool loaded_ = false;
  std::optional<std::string> driver_;
};

}  // namespace flagos::cuda
