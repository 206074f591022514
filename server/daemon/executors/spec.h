// SPDX-License-Identifier: Apache-2.0
// What an executor is started with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/daemon/config/config.h"

namespace flagos::daemon {

// Devices of the node, in the order in which a session sees them. Empty: all that the vendor presents.
using DeviceSet = std::vector<uint32_t>;

struct ExecutorSpec {
  std::string program;
  std::string vendor;
  std::string vendor_dir;
  std::string libtorch;
  std::map<std::string, std::string> options;
  DeviceSet devices;
  std::vector<std::string> device_nodes;  // that it opens, as DeviceAllow of systemd names them
  std::string daemon_socket;              // where the executor finds a later flagosd; empty: it looks for none

  static ExecutorSpec From(const Config& config, DeviceSet devices);
  // The command line, as server/common/executor_channel.h says it.
  std::vector<std::string> arguments(int channel_fd) const;
};

}  // namespace flagos::daemon
