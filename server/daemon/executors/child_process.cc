// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "server/common/status.h"
#include "server/common/strings.h"

extern char** environ;

namespace flagos::daemon {
namespace {

// What concerns flagosd or its client alone.
constexpr std::array<std::string_view, 6> kNotInherited = {"NOTIFY_SOCKET=", "LISTEN_",  "WATCHDOG_",
                                                           "FLAGOS_TOKEN=",  "FLAGOSD_", "FLAGOS_ENDPOINT="};

std::vector<char*> ChildEnvironment() {
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (std::none_of(kNotInherited.begin(), kNotInherited.end(),
                     [&](auto prefix) { return text.starts_with(prefix); })) {
      environment.push_back(*entry);
    }
  }
  environment.push_back(nullptr);
  return environment;
}

// posix_spawn's two objects, with their ends.
struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

void Prepare(SpawnSettings& settings, int channel, int output) {
  posix_spawn_file_actions_addopen(&settings.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&settings.files, output, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&settings.files, channel, kChildChannelFd);
  posix_spawn_file_actions_addclosefrom_np(&settings.files, kChildChannelFd + 1);

  // SIGPIPE stays ignored: a child that prints after flagosd is gone must live on.
  sigset_t none, defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  sigdelset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &defaults);
  posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
}

}  // namespace

absl::StatusOr<ChildProcess> StartChild(const std::vector<std::string>& arguments, int channel, int output,
                                        const std::string& what, const std::string& advice) {
  SpawnSettings settings;
  Prepare(settings, channel, output);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::vector<char*> environment = ChildEnvironment();
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, argv[0], &settings.files, &settings.attributes, argv.data(), environment.data());
  if (error != 0) return SystemError(error, Cat("cannot start ", what, " ", arguments[0]), advice);
  // Our own child, not reaped yet: its number cannot be another process's.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const int failure = errno;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {  // no pidfd will tell of it
    }
    return SystemError(failure, Cat("cannot watch ", what), "raise the limit of open files; a kernel of 5.4 is needed");
  }
  return ChildProcess{pid, std::move(pidfd)};
}

}  // namespace flagos::daemon
