// SPDX-License-Identifier: Apache-2.0
// The two things that flagosd says to, and takes from, a service manager. Both are a line of protocol each, so that
// nothing links libsystemd.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "proto/shm/memfd.h"

namespace flagos::daemon {

// Sends "READY=1" and the like to NOTIFY_SOCKET; nothing where that is not set. Never blocks.
void NotifyServiceManager(std::string_view state);

// "RELOADING=1" with the time that Type=notify-reload asks for; "READY=1" ends it, whether the reload succeeded or not.
void NotifyReloading();

// How often the service manager wants "WATCHDOG=1" (WATCHDOG_USEC, WATCHDOG_PID), half of its patience; zero: not at
// all.
std::chrono::microseconds WatchdogInterval();

// A listening socket that a .socket unit passed, with its FileDescriptorName.
struct PassedSocket {
  std::string name;
  UniqueFd fd;  // close-on-exec
};
// All of them (LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES). Once per process.
std::vector<PassedSocket> TakePassedSockets();

}  // namespace flagos::daemon
