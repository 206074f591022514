// SPDX-License-Identifier: Apache-2.0
// The command line of flagos-executor (server/common/executor_channel.h).
#pragma once

#include <optional>
#include <string>

#include "server/common/log.h"
#include "vendors/interface/vendor.h"

namespace flagos::executor {

struct Arguments {
  std::string vendor;
  std::string vendor_dir;
  std::string libtorch;  // empty: where the vendor's manifest says
  int channel_fd = -1;
  std::string daemon;  // socket by which a later flagosd is found; empty: none is looked for
  vendor::Options options;
  log::Level log_level = log::Level::kInfo;
};

// nullopt: the process ends with `exit_code`; help or the mistake was printed.
std::optional<Arguments> ParseArguments(int argc, const char* const* argv, int& exit_code);

}  // namespace flagos::executor
