// SPDX-License-Identifier: Apache-2.0
// How a process ended.
#pragma once

#include <optional>
#include <string>

namespace flagos::daemon {

struct ExitStatus {
  int code = 0;             // where `signal` is 0
  int signal = 0;           // 0: it ended by itself
  bool known = true;        // false: it has ended, and nobody tells how
  std::string reason = {};  // where it did not even start: why

  bool clean() const { return known && code == 0 && signal == 0 && reason.empty(); }
  // "ended with exit code 3", "was killed by signal 11 (SIGSEGV)", "has ended, nobody tells how"
  std::string describe() const;
};

// Reaps the process of `pidfd`; nullopt while it runs. Not known where it is not our child.
std::optional<ExitStatus> Reap(int pidfd);

}  // namespace flagos::daemon
