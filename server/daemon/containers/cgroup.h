// SPDX-License-Identifier: Apache-2.0
// Which control group a process is in: what tells one container from another.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace flagos::daemon {

struct Cgroup {
  std::string path;  // in the unified hierarchy, as flagosd sees it
  uint64_t id = 0;   // inode of its folder, so that a later one of the same name is another; 0: not to be seen
  bool operator==(const Cgroup&) const = default;
};

// kPermissionDenied where the kernel does not say, or the group lies outside of flagosd's own cgroup namespace. The
// caller makes sure that `pid` is still the process that it means.
absl::StatusOr<Cgroup> CgroupOf(pid_t pid);
// Of the text of /proc/PID/cgroup.
absl::StatusOr<std::string> ParseCgroup(const std::string& text);
// `inner` is `outer` or below it.
bool IsWithin(const Cgroup& inner, const Cgroup& outer);

}  // namespace flagos::daemon
