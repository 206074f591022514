// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/systemd.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "server/common/fd.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

constexpr int kFirstPassedFd = 3;

}  // namespace

void NotifyServiceManager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof address.sun_path) return;
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  ::sendto(socket.get(), state.data(), state.size(), MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address),
           size);
}

void NotifyReloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  NotifyServiceManager(Cat("RELOADING=1\nMONOTONIC_USEC=", int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000));
}

std::chrono::microseconds WatchdogInterval() {
  const char* const limit = std::getenv("WATCHDOG_USEC");
  const char* const pid = std::getenv("WATCHDOG_PID");
  if (limit == nullptr || (pid != nullptr && std::strtol(pid, nullptr, 10) != ::getpid())) return {};
  return std::chrono::microseconds(std::strtoll(limit, nullptr, 10) / 2);
}

std::vector<PassedSocket> TakePassedSockets() {
  std::vector<PassedSocket> sockets;
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || std::strtol(pid, nullptr, 10) != ::getpid()) return sockets;
  const long sockets_passed = std::strtol(count, nullptr, 10);
  const char* const given = std::getenv("LISTEN_FDNAMES");
  std::istringstream names(given == nullptr ? "" : given);
  for (int fd = kFirstPassedFd; fd < kFirstPassedFd + sockets_passed; ++fd) {
    std::string name;
    std::getline(names, name, ':');
    if (SetCloseOnExec(fd, true).ok()) sockets.push_back({std::move(name), UniqueFd(fd)});
  }
  ::unsetenv("LISTEN_PID");
  ::unsetenv("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  return sockets;
}

}  // namespace flagos::daemon
