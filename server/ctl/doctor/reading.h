// SPDX-License-Identifier: Apache-2.0
// What a vendor's devices tell of themselves, asked without a flagosd.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "proto/wire/telemetry.h"

namespace flagos::ctl {

// Runs flagos-monitor of the installation in `folder` for one reading: a library that crashes or hangs does so there.
// The error says why there is none.
absl::StatusOr<std::vector<DeviceReading>> TakeReading(const std::string& folder, const std::string& vendor);

}  // namespace flagos::ctl
