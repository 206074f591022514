// SPDX-License-Identifier: Apache-2.0
// What is looked at for NVIDIA GPUs, apart from what it means, so that tests can say what there is.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proto/wire/telemetry.h"
#include "server/ctl/doctor/check.h"

namespace flagos::ctl {

struct NvidiaMachine {
  std::string root;                    // of /proc and /dev; "" on a real machine
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES
  std::function<absl::Status(const std::string& library)> load;
  // Every GPU's figures by NVML, which makes no context; the error says why there are none.
  absl::StatusOr<std::vector<DeviceReading>> readings;
};

void CheckNvidiaMachine(const NvidiaMachine& machine, Checks& checks);

}  // namespace flagos::ctl
