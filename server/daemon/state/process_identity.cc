// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/state/process_identity.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "server/common/strings.h"

namespace flagos::daemon {

std::optional<ProcessIdentity> Identify(pid_t pid) {
  std::ifstream file(Cat("/proc/", pid, "/stat"));
  std::string line;
  if (pid <= 0 || !std::getline(file, line)) return std::nullopt;
  // The second field is the program's name in brackets, which may hold anything. The state follows, as the third.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  ProcessIdentity identity{.pid = pid};
  if (!(fields >> identity.start_time) || state == "Z" || state == "X") return std::nullopt;
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
