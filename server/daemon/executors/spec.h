// SPDX-License-Identifier: Apache-2.0
// What an executor is started with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"
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

  static ExecutorSpec From(const Config& config, DeviceSet devices);
  // The command line, as server/common/executor_channel.h says it.
  std::vector<std::string> arguments(int channel_fd) const;
};

// A running child: its pidfd and our ends of its channel (non-blocking) and of what it prints.
struct SpawnedExecutor {
  pid_t pid = -1;
  UniqueFd pidfd;
  UniqueFd channel;
  UniqueFd output;
};

// Starts the process in a session of its own (no terminal signal reaches it), with no descriptor of ours.
absl::StatusOr<SpawnedExecutor> Spawn(const ExecutorSpec& spec);

}  // namespace flagos::daemon
