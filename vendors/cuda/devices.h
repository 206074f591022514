// SPDX-License-Identifier: Apache-2.0
// Which GPUs there are and what they are.
#pragma once

#include <vector>

#include "proto/wire/attach.h"
#include "proto/wire/error.h"
#include "vendors/interface/vendor.h"

namespace flagos::cuda {

// Makes the wanted devices the process's only ones, numbered from 0 in the session's order, and describes them. Before
// anything else of CUDA in the process. The error says whether the driver is absent or too old, there is no device, or
// one cannot be used. May throw c10::Error.
Result<std::vector<DeviceRecord>> OpenDevices(const vendor::Options& options);

}  // namespace flagos::cuda
