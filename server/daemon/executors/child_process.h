// SPDX-License-Identifier: Apache-2.0
// Starting a program of ours as a child.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"

namespace flagos::daemon {

// Where a child finds its end of the channel.
inline constexpr int kChildChannelFd = 3;

struct ChildProcess {
  pid_t pid = -1;
  UniqueFd pidfd;
};

// Runs `arguments`, the first of which is the program's path, in a session of its own (no terminal signal reaches it).
// Of our descriptors it gets `channel` and, as standard output and error, `output`. `what` names it in errors, and
// `advice` says what to do where it cannot be started.
absl::StatusOr<ChildProcess> StartChild(const std::vector<std::string>& arguments, int channel, int output,
                                        const std::string& what, const std::string& advice);

}  // namespace flagos::daemon
