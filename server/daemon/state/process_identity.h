// SPDX-License-Identifier: Apache-2.0
// Which process a number meant: numbers are used again, a number with its start time is not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"

namespace flagos::daemon {

struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot
  bool operator==(const ProcessIdentity&) const = default;
};

// nullopt: there is no such process, or it is a zombie.
std::optional<ProcessIdentity> Identify(pid_t pid);
// A pidfd of exactly this process; invalid: it has ended.
UniqueFd OpenProcess(const ProcessIdentity& process);

// Of this boot of the kernel; empty where /proc is not mounted.
std::string BootId();
// CLOCK_BOOTTIME, which goes on while the machine sleeps and which nobody sets. Nanoseconds.
uint64_t BootNanoseconds();

}  // namespace flagos::daemon
