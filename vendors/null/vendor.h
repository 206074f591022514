// SPDX-License-Identifier: Apache-2.0
// The vendor without a device: it keeps the books and computes nothing. README.md tells how to make another from it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vendors/interface/vendor.h"

namespace flagos::null {

// Options: "devices", how many the node has (default 1); "memory", bytes of each (default 16 GiB).
class NullVendor final : public vendor::Vendor {
 public:
  const char* name() const override { return "null"; }
  std::string torch_version() const override { return {}; }
  Result<std::vector<DeviceRecord>> start(const vendor::Options& options) override;
  Result<std::unique_ptr<vendor::Backend>> open(vendor::Host& host) override;

 private:
  uint32_t device_count_ = 0;  // of the session
  uint64_t kernel_ns_ = 0;
};

}  // namespace flagos::null
