// SPDX-License-Identifier: Apache-2.0
// A private flagosd that serves this process alone and ends with it.
#pragma once

#include <sys/types.h>

#include <string>

#include "client/connection.h"
#include "client/endpoint.h"
#include "proto/shm/memfd.h"
#include "proto/wire/error.h"

namespace flagos::client {

struct EmbeddedDaemon {
  UniqueFd attach;  // the daemon ends when this closes
  pid_t pid = -1;
};

// Starts `flagosd --embedded` with one end of a socket pair. Safe while other threads run: nothing is allocated or
// locked between fork and exec. The daemon inherits the environment and stderr, no other descriptor, and is in a
// session of its own, so that a Ctrl-C at the terminal reaches the program and not its devices.
Result<EmbeddedDaemon> StartEmbedded(const Endpoint& endpoint, const ProcessInfo& process);

// How the daemon ended, for an error message, if it did within `timeout_ms`; then it is reaped. Empty if it runs.
std::string DescribeEnd(pid_t daemon, int timeout_ms);

}  // namespace flagos::client
