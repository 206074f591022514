// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/doctor/reading.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "proto/shm/memfd.h"
#include "server/common/status.h"
#include "server/common/strings.h"

extern char** environ;

namespace flagos::ctl {
namespace {

constexpr int kChannelFd = 3;
constexpr int kPatienceMs = 20'000;  // a driver that wakes its devices takes long

// The monitor with its channel as descriptor 3; -1: it cannot be started, for the reason in errno.
pid_t Start(const std::string& folder, const std::string& vendor, int channel) {
  std::array<std::string, 7> words = {
      folder + "/bin/flagos-monitor", "--vendor", vendor, "--vendor-dir", folder + "/vendors", "--channel-fd",
      std::to_string(kChannelFd)};
  std::array<char*, words.size() + 1> arguments{};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, output, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&files, channel, kChannelFd);
  posix_spawn_file_actions_addclosefrom_np(&files, kChannelFd + 1);
  pid_t pid = -1;
  errno = ::posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  return errno == 0 ? pid : -1;
}

absl::StatusOr<std::vector<DeviceReading>> Receive(int channel) {
  std::vector<std::byte> buffer(kMaxMonitorMessage);
  pollfd entry{channel, POLLIN, 0};
  if (::poll(&entry, 1, kPatienceMs) != 1) return absl::DeadlineExceededError("the devices do not answer");
  const ssize_t size = ::recv(channel, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size <= 0) return absl::AbortedError("flagos-monitor ended without a word");
  auto message = DecodeMonitorMessage(std::span(buffer).first(static_cast<size_t>(size)));
  if (!message.ok()) return ToStatus(message.error());
  if (!message.value().failure.empty()) return absl::UnavailableError(Printable(message.value().failure));
  return std::move(message.value().readings);
}

}  // namespace

absl::StatusOr<std::vector<DeviceReading>> TakeReading(const std::string& folder, const std::string& vendor) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return absl::InternalError(absl::StrCat("no socket: ", std::strerror(errno)));
  }
  const UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  const pid_t pid = Start(folder, vendor, theirs.get());
  if (pid < 0) return absl::NotFoundError(absl::StrCat("cannot start flagos-monitor: ", std::strerror(errno)));
  theirs.reset();
  auto readings = Receive(ours.get());
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return readings;
}

}  // namespace flagos::ctl
