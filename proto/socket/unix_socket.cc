// SPDX-License-Identifier: Apache-2.0
#include "proto/socket/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proto/shm/futex.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace flagos {
namespace {

constexpr int kConnectTimeout = 2000;  // milliseconds

std::string Reason() { return std::strerror(errno); }

template <class Call>
auto RetryInterrupted(Call&& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

bool PollFor(int fd, short events, int timeout_ms) {
  pollfd entry{fd, events, 0};
  return RetryInterrupted([&] { return ::poll(&entry, 1, timeout_ms); }) > 0 && entry.revents != 0;
}

// Takes the descriptors out of a message; false where there were more than fit or none were wanted.
bool TakeDescriptors(msghdr& message, std::vector<UniqueFd>* fds) {
  bool good = (message.msg_flags & MSG_CTRUNC) == 0;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr; entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(entry) + i * sizeof(int), sizeof fd);
      UniqueFd owned(fd);
      if (fds != nullptr && fds->size() < kMaxPassedFds) {
        fds->push_back(std::move(owned));
      } else {
        good = false;
      }
    }
  }
  return good;
}

}  // namespace

int TryConnectUnix(const std::string& path, int timeout_ms, UniqueFd& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  // Connecting waits where too many wait already: that ends, too.
  const timeval limit{timeout_ms / 1000, timeout_ms % 1000 * 1000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (RetryInterrupted([&] { return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address); }) != 0)
    return errno;
  socket = std::move(fd);
  return 0;
}

Result<UniqueFd> ConnectUnix(const std::string& path) {
  UniqueFd fd;
  const int error = TryConnectUnix(path, kConnectTimeout, fd);
  const std::string head = "cannot reach flagosd at " + path + ": " + std::strerror(error) + "; ";
  switch (error) {
    case 0: return fd;
    case ENAMETOOLONG:
      return MakeError(ErrorCode::kValue, "the socket path " + path + " is longer than the " +
                                              std::to_string(sizeof sockaddr_un::sun_path - 1) +
                                              " bytes that a unix socket may have; use a shorter one");
    case EMFILE:
    case ENFILE: return MakeError(ErrorCode::kUnavailable, head + "raise the limit of open files (ulimit -n)");
    case ENOENT:
      return MakeError(ErrorCode::kUnavailable, head + "start flagosd, or set FLAGOS_ENDPOINT to its socket");
    case EACCES:
    case EPERM:
      return MakeError(ErrorCode::kPermission, head + "your user needs write permission on the socket (group flagos)");
    case EAGAIN: return MakeError(ErrorCode::kTimeout, head + "it accepts no connections; see its log, or restart it");
    default: break;
  }
  struct stat status {};
  const bool other = ::stat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode);
  return MakeError(ErrorCode::kUnavailable, head + (other ? "that is no socket; name the one that flagosd listens on"
                                                          : "nothing listens there any more; start flagosd again"));
}

Result<std::pair<UniqueFd, UniqueFd>> UnixPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return MakeError(ErrorCode::kUnavailable,
                     "cannot create a socket pair: " + Reason() + "; raise the limit of open files");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Error SendRecord(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxPassedFds * sizeof(int))] = {};
  while (!bytes.empty()) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* const entry = CMSG_FIRSTHDR(&message);
      entry->cmsg_level = SOL_SOCKET;
      entry->cmsg_type = SCM_RIGHTS;
      entry->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(entry), fds.data(), fds.size_bytes());
    }
    const ssize_t sent = RetryInterrupted([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
    if (sent < 0) return MakeError(ErrorCode::kUnavailable, "cannot send to the peer: " + Reason());
    bytes = bytes.subspan(static_cast<size_t>(sent));
    fds = {};
  }
  return Error::Ok();
}

Error ReceiveRecord(int socket, std::span<std::byte> bytes, std::vector<UniqueFd>* fds, int timeout_ms) {
  const uint64_t deadline = MonotonicNanoseconds() + static_cast<uint64_t>(timeout_ms) * 1'000'000;
  size_t received = 0;
  while (received < bytes.size()) {
    int wait = -1;
    if (timeout_ms >= 0) {
      const uint64_t now = MonotonicNanoseconds();
      wait = now >= deadline ? 0 : static_cast<int>((deadline - now) / 1'000'000 + 1);
    }
    if (!PollFor(socket, POLLIN, wait)) {
      return MakeError(ErrorCode::kTimeout, "the peer did not answer within " + std::to_string(timeout_ms) + " ms");
    }
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxPassedFds * sizeof(int))] = {};
    iovec part{bytes.data() + received, bytes.size() - received};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = RetryInterrupted([&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC); });
    if (got < 0) return MakeError(ErrorCode::kUnavailable, "cannot receive from the peer: " + Reason());
    if (!TakeDescriptors(message, fds))
      return MakeError(ErrorCode::kMalformed, "the peer sent descriptors that nobody asked for");
    if (got == 0) {
      return MakeError(
          received == 0 ? ErrorCode::kUnavailable : ErrorCode::kMalformed,
          received == 0 ? "the peer closed the connection" : "the peer closed the connection within a record");
    }
    received += static_cast<size_t>(got);
  }
  return Error::Ok();
}

std::optional<PeerCredentials> GetPeerCredentials(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Result<UniqueFd> GetPeerPidfd(int socket) {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0 && pidfd >= 0) return UniqueFd(pidfd);
  // A kernel that has it and does not give it says that the process has ended: its number may be another's by now.
  if (errno != ENOPROTOOPT)
    return MakeError(ErrorCode::kUnavailable, "the process at the other end has ended: " + Reason());
  const auto credentials = GetPeerCredentials(socket);
  if (!credentials || credentials->pid <= 0) {
    return MakeError(ErrorCode::kPermission,
                     "the process at the other end is not visible from here (another pid "
                     "namespace); a kernel of 6.5 or later is needed for that");
  }
  UniqueFd opened(static_cast<int>(::syscall(SYS_pidfd_open, credentials->pid, 0)));
  if (!opened) return MakeError(ErrorCode::kUnavailable, "the process at the other end has ended: " + Reason());
  return opened;
}

bool HasExited(int pidfd) { return PollFor(pidfd, POLLIN, 0); }

bool HasHungUp(int socket) {
  pollfd entry{socket, POLLRDHUP, 0};
  if (RetryInterrupted([&] { return ::poll(&entry, 1, 0); }) <= 0) return false;
  return (entry.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace flagos
