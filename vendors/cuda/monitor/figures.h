// SPDX-License-Identifier: Apache-2.0
// What NVML tells of one GPU, as a reading.
#pragma once

#include <string>

#include "proto/wire/telemetry.h"
#include "vendors/cuda/monitor/nvml.h"

namespace flagos::cuda {

// Everything but the UUID. A call that the driver does not have, or that fails for this GPU, leaves its figure absent.
DeviceReading ReadFigures(const Nvml& nvml, NvmlDevice* device);

// "power cap, heat (hardware)", "none"; of the bits of nvmlDeviceGetCurrentClocksEventReasons.
std::string ClocksHeldBy(unsigned long long reasons);

}  // namespace flagos::cuda
