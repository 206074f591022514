// SPDX-License-Identifier: Apache-2.0
#include "server/executor/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "server/common/status.h"

namespace flagos::executor {

void CloseInherited(int keep) {
  const auto kept = static_cast<unsigned>(keep);
  if (kept > 3) ::close_range(3, kept - 1, 0);
  ::close_range(std::max(kept + 1, 3u), ~0u, 0);
  ::fcntl(keep, F_SETFD, FD_CLOEXEC);
}

UniqueFd MoveFromStandard(int fd) {
  if (fd > STDERR_FILENO) return UniqueFd(fd);
  UniqueFd moved(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) ::dup2(null.get(), fd);
  return moved;
}

absl::StatusOr<UniqueFd> TakeSignals() {
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  sigset_t taken;
  ::sigemptyset(&taken);
  ::sigaddset(&taken, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  UniqueFd fd(::signalfd(-1, &taken, SFD_CLOEXEC));
  if (!fd) return SystemError(errno, "cannot take signals", "raise the limit of open files");
  return fd;
}

void SetThreadName(const std::string& name) { ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str()); }

}  // namespace flagos::executor
