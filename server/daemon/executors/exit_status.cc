// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/exit_status.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "proto/socket/unix_socket.h"
#include "server/common/strings.h"

namespace flagos::daemon {

std::string ExitStatus::describe() const {
  if (!reason.empty()) return Cat("did not start: ", reason);
  if (!known) return "has ended, nobody tells how";
  if (signal == 0) return Cat("ended with exit code ", code);
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? Cat("was killed by signal ", signal)
                         : Cat("was killed by signal ", signal, " (SIG", name, ")");
}

std::optional<ExitStatus> Reap(int pidfd) {
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    // Somebody else's child, or reaped by somebody else.
    if (!HasExited(pidfd)) return std::nullopt;
    return ExitStatus{.known = false};
  }
  if (info.si_pid == 0) return std::nullopt;
  if (info.si_code == CLD_EXITED) return ExitStatus{.code = info.si_status};
  return ExitStatus{.signal = info.si_status};
}

}  // namespace flagos::daemon
