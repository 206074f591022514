// SPDX-License-Identifier: Apache-2.0
// How a process ended.
#pragma once

#include <optional>
#include <string>

namespace flagos::daemon {

struct ExitStatus {
  int code = 0;    // where `signal` is 0
  int signal = 0;  // 0: it ended by itself

  bool clean() const { return code == 0 && signal == 0; }
  // "ended with exit code 3", "was killed by signal 11 (SIGSEGV)"
  std::string describe() const;
};

// Reaps the child of `pidfd`; nullopt while it runs.
std::optional<ExitStatus> Reap(int pidfd);

}  // namespace flagos::daemon
