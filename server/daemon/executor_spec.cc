// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executor_spec.h"

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

#include "proto/socket/unix_socket.h"
#include "server/common/fd.h"
#include "server/common/status.h"
#include "server/common/strings.h"

extern char** environ;

namespace flagos::daemon {
namespace {

constexpr int kChildChannelFd = 3;

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

  // SIGPIPE stays ignored: an executor that prints after flagosd is gone must live on.
  sigset_t none, defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  sigdelset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &defaults);
  posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
}

}  // namespace

ExecutorSpec ExecutorSpec::From(const Config& config, DeviceSet devices) {
  ExecutorSpec spec{.program = config.executor,
                    .vendor = config.devices.vendor,
                    .vendor_dir = config.vendor_dir,
                    .libtorch = config.vendor().libtorch,
                    .options = config.vendor().options,
                    .devices = std::move(devices)};
  if (config.devices.count != 0) spec.options["devices"] = std::to_string(config.devices.count);
  return spec;
}

std::vector<std::string> ExecutorSpec::arguments(int channel_fd) const {
  std::vector<std::string> arguments = {
      program, "--vendor", vendor, "--vendor-dir", vendor_dir, "--channel-fd", std::to_string(channel_fd)};
  const auto add = [&](const char* flag, std::string value) {
    arguments.emplace_back(flag);
    arguments.push_back(std::move(value));
  };
  if (!libtorch.empty()) add("--libtorch", libtorch);
  if (!devices.empty()) {
    std::string list;
    for (const uint32_t device : devices) list += Cat(list.empty() ? "" : ",", device);
    add("--devices", list);
  }
  for (const auto& [key, value] : options) add("--option", Cat(key, "=", value));
  return arguments;
}

absl::StatusOr<SpawnedExecutor> Spawn(const ExecutorSpec& spec) {
  auto pair = ToStatusOr(UnixPair());
  if (!pair.ok()) return pair.status();
  auto& [ours, theirs] = *pair;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return SystemError(errno, "cannot create a pipe", "raise the limit of open files");
  UniqueFd output(pipe[0]);
  const UniqueFd child_output(pipe[1]);
  FLAGOS_RETURN_IF_ERROR(SetNonBlocking(ours.get()));
  FLAGOS_RETURN_IF_ERROR(SetNonBlocking(output.get()));

  SpawnSettings settings;
  Prepare(settings, theirs.get(), child_output.get());
  const std::vector<std::string> arguments = spec.arguments(kChildChannelFd);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::vector<char*> environment = ChildEnvironment();
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, spec.program.c_str(), &settings.files, &settings.attributes, argv.data(), environment.data());
  if (error != 0) {
    return SystemError(error, Cat("cannot start the executor ", spec.program),
                       "install flagos-executor beside flagosd, or name it with --executor");
  }
  // Our own child, not reaped yet: its number cannot be another process's.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const int failure = errno;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {  // no pidfd will tell of it
    }
    return SystemError(failure, "cannot watch the executor",
                       "raise the limit of open files; a kernel of 5.4 is needed");
  }
  return SpawnedExecutor{pid, std::move(pidfd), std::move(ours), std::move(output)};
}

}  // namespace flagos::daemon
