// SPDX-License-Identifier: Apache-2.0
// The vendors that were installed with this program.
#pragma once

#include <string>
#include <vector>

#include "server/executor/manifest.h"

namespace flagos::ctl {

// The folder of the vendors beside this program's.
std::string VendorFolder();

// Manifests of the vendors in a folder, by name; those that do not read are left out.
std::vector<executor::Manifest> ReadVendors(const std::string& folder);

}  // namespace flagos::ctl
