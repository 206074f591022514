// SPDX-License-Identifier: Apache-2.0
// From a vendor's name to what watches its devices.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "vendors/interface/monitor.h"

namespace flagos::monitor {

// Loads the library (vendors/interface/monitor.h) and makes its monitor, not started yet. What was loaded stays.
absl::StatusOr<std::unique_ptr<vendor::Monitor>> LoadMonitor(const std::string& vendor, const std::string& vendor_dir);

}  // namespace flagos::monitor
