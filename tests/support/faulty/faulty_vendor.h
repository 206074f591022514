// SPDX-License-Identifier: Apache-2.0
// The null vendor with operators that misbehave: faults come in through the seam that vendors use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vendors/interface/vendor.h"
#include "vendors/null/vendor.h"

namespace flagos::testing {

// Operators, each with one free f64:
//   test::fail        fails at once
//   test::fail_later  its failure comes from another thread after so many milliseconds; fences wait for that
//   test::lose        fails at once, and no later call could run: the device is lost
//   test::drop        lets its responder go without an answer
//   test::twice       answers twice
//   test::slow        answers from another thread after so many milliseconds
//   test::large       answers with a body of so many bytes
//   test::warn        warns, and answers where it is SYNC
//   test::stall       keeps the dispatch thread for so many milliseconds
//   test::abort       ends the process with SIGABRT
class FaultyVendor final : public vendor::Vendor {
 public:
  const char* name() const override { return "faulty"; }
  std::string torch_version() const override { return {}; }
  Result<std::vector<DeviceRecord>> start(const vendor::Options& options) override { return null_.start(options); }
  Result<std::unique_ptr<vendor::Backend>> open(vendor::Host& host) override;

 private:
  null::NullVendor null_;
};

}  // namespace flagos::testing
