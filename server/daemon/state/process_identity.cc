// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/state/process_identity.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fstream>

#include "proto/shm/process_identity.h"

namespace flagos::daemon {

std::optional<ProcessIdentity> Identify(pid_t pid) {
  const ProcessIdentity identity{.pid = pid, .start_time = StartTimeOf(pid)};
  if (pid <= 0 || identity.start_time == 0 || ProcessIsGone({pid, identity.start_time})) return std::nullopt;
  return identity;
}

UniqueFd OpenProcess(const ProcessIdentity& process) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  // Looked at after it was opened: what the number means now is what the descriptor means for ever.
  if (pidfd && Identify(process.pid) != process) pidfd.reset();
  return pidfd;
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

uint64_t BootNanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace flagos::daemon
