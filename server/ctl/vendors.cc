// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/vendors.h"

#include <algorithm>
#include <filesystem>

#include "server/common/fd.h"

namespace flagos::ctl {

namespace fs = std::filesystem;

std::string VendorFolder() { return (fs::path(OwnExecutable()).parent_path().parent_path() / "vendors").string(); }

std::vector<executor::Manifest> ReadVendors(const std::string& folder) {
  std::vector<executor::Manifest> manifests;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (auto manifest = executor::ReadManifest((at->path() / "manifest.toml").string()); manifest.ok()) {
      manifests.push_back(*std::move(manifest));
    }
  }
  std::ranges::sort(manifests, {}, &executor::Manifest::name);
  return manifests;
}

}  // namespace flagos::ctl
