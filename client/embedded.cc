// SPDX-License-Identifier: Apache-2.0
#include "client/embedded.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <vector>

#include "proto/socket/unix_socket.h"

extern char** environ;

namespace flagos::client {
namespace {

constexpr int kDaemonFd = 3;  // the daemon's end of the connection, in the daemon

// posix_spawn's two argument objects, which want to be destroyed.
struct SpawnSetup {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  explicit SpawnSetup(int fd, bool has_stderr) {
    ::posix_spawn_file_actions_init(&actions);
    // First: where standard streams were closed, `fd` has the number of one. Where it is kDaemonFd, this makes it stay
    // open in the daemon.
    ::posix_spawn_file_actions_adddup2(&actions, fd, kDaemonFd);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!has_stderr) ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, kDaemonFd + 1);
    ::posix_spawnattr_init(&attributes);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
};

}  // namespace

Result<EmbeddedDaemon> StartEmbedded(const Endpoint& endpoint, const ProcessInfo& process) {
  const std::string program = process.bin + "/flagosd";
  if (::access(program.c_str(), X_OK) != 0) {
    return MakeError(ErrorCode::kUnavailable,
                     "cannot start a private flagosd: no program " + program + ": " + std::strerror(errno) +
                         "; reinstall the flagos package, or set FLAGOS_ENDPOINT to a running flagosd");
  }
  const bool has_stderr = ::fcntl(STDERR_FILENO, F_GETFD) >= 0;  // before the pair takes its number
  auto pair = UnixPair();
  if (!pair.ok()) return pair.error();
  auto [ours, theirs] = std::move(pair).value();

  std::vector<std::string> words = {program,    "--embedded",    "--connection-fd", std::to_string(kDaemonFd),
                                    "--vendor", endpoint.vendor, "--devices",       std::to_string(endpoint.devices)};
  if (!process.libtorch.empty()) words.insert(words.end(), {"--libtorch", process.libtorch});
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const SpawnSetup setup(theirs.get(), has_stderr);
  pid_t pid = -1;
  const int failure =
      ::posix_spawn(&pid, program.c_str(), &setup.actions, &setup.attributes, arguments.data(), environ);
  if (failure != 0) {
    return MakeError(ErrorCode::kUnavailable, "cannot start a private flagosd (" + program +
                                                  "): " + std::strerror(failure) +
                                                  "; check the limits of processes and memory");
  }
  return EmbeddedDaemon{std::move(ours), pid};
}

std::string DescribeEnd(pid_t daemon, int timeout_ms) {
  for (int waited = 0;; waited += 10) {
    int status = 0;
    if (::waitpid(daemon, &status, WNOHANG) == daemon) {
      if (WIFSIGNALED(status)) return std::string("ended by signal ") + ::strsignal(WTERMSIG(status));
      return "ended with exit status " + std::to_string(WEXITSTATUS(status));
    }
    if (waited >= timeout_ms) return {};
    const timespec pause{0, 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace flagos::client
