// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/exit_status.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "server/common/strings.h"

namespace flagos::daemon {

std::string ExitStatus::describe() const {
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
  if (result != 0) return ExitStatus{-1, 0};  // somebody else reaped it; that is the end of it all the same
  if (info.si_pid == 0) return std::nullopt;
  if (info.si_code == CLD_EXITED) return ExitStatus{info.si_status, 0};
  return ExitStatus{0, info.si_status};
}

}  // namespace flagos::daemon
