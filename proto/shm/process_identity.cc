// SPDX-License-Identifier: Apache-2.0
#include "proto/shm/process_identity.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "proto/shm/memfd.h"

namespace flagos {
// Field 22 of /proc/PID/stat. The second one, the program's name, may have anything in it but ends with the last ')'.
uint64_t StartTimeOf(int64_t pid) {
  const UniqueFd file(::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return 0;
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

ProcessIdentity OwnIdentity() { return {::getpid(), StartTimeOf(::getpid())}; }

bool ProcessIsGone(const ProcessIdentity& process) {
  if (process.pid <= 0 || process.pid > INT32_MAX) return true;
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0)));
  if (!pidfd) return errno == ESRCH || errno == EINVAL;
  // The descriptor first: what is read afterwards is of the same process, or of none.
  const uint64_t started = StartTimeOf(process.pid);
  if (started != 0 && process.started != 0 && started != process.started) return true;
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace flagos
