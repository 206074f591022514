// SPDX-License-Identifier: Apache-2.0
// From a vendor's name to the vendor.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "vendors/interface/vendor.h"

namespace flagos::executor {

// Reads DIR/NAME/manifest.toml, sets its environment, loads libtorch (from `libtorch`, else from where the manifest
// says, else from an installed runtime that fits), the libraries to preload and the vendor's own, and makes the vendor,
// not started yet. What was loaded stays. Call before there are other threads.
absl::StatusOr<std::unique_ptr<vendor::Vendor>> LoadVendor(const std::string& name, const std::string& dir,
                                                           const std::string& libtorch);

}  // namespace flagos::executor
