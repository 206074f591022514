// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/doctor/library.h"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proto/shm/memfd.h"
#include "server/common/strings.h"

namespace flagos::ctl {
namespace {

constexpr int kPatienceMs = 10'000;

// What the child writes: nothing where all is well, else the loader's reason.
[[noreturn]] void LoadAndTell(const std::string& library, int to) {
  if (::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    const char* const why = ::dlerror();
    const char* const text = why == nullptr ? "unknown reason" : why;
    [[maybe_unused]] const ssize_t written = ::write(to, text, std::strlen(text));
  }
  ::_exit(0);  // nothing of ours or of the library's is destroyed
}

// Until the child's end of the pipe is closed; false: it never was.
bool ReadAll(int from, std::string& text) {
  char buffer[512];
  for (;;) {
    pollfd entry{from, POLLIN, 0};
    const int ready = ::poll(&entry, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t size = ::read(from, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    text.append(buffer, static_cast<size_t>(size));
  }
}

}  // namespace

absl::Status TryLoad(const std::string& library) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return absl::InternalError(absl::StrCat("no pipe: ", std::strerror(errno)));
  const UniqueFd reader(pipe[0]);
  UniqueFd writer(pipe[1]);
  const pid_t child = ::fork();
  if (child < 0) return absl::InternalError(absl::StrCat("no process: ", std::strerror(errno)));
  if (child == 0) LoadAndTell(library, writer.get());
  writer.reset();
  std::string why;
  const bool ended = ReadAll(reader.get(), why);
  if (!ended) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return absl::DeadlineExceededError(absl::StrCat("loading ", library, " does not come to an end"));
  if (WIFSIGNALED(status)) {
    return absl::AbortedError(absl::StrCat("loading ", library, " crashes with signal ", WTERMSIG(status)));
  }
  return why.empty() ? absl::OkStatus() : absl::NotFoundError(Printable(why));
}

}  // namespace flagos::ctl
