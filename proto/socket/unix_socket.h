// SPDX-License-Identifier: Apache-2.0
// Unix sockets that carry fixed records and file descriptors, and who is at the other end. All calls retry EINTR.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/shm/memfd.h"
#include "proto/wire/error.h"

namespace flagos {

inline constexpr size_t kMaxPassedFds = 16;

// Connects a stream socket. The error tells an absent path from a refused connection, from missing permission and from
// a daemon that accepts nobody (kTimeout, after 2 s).
Result<UniqueFd> ConnectUnix(const std::string& path);

// The same without a text: 0 and the connected socket, else the errno. ENAMETOOLONG: the path does not fit into an
// address. EAGAIN: the daemon accepted nobody within `timeout_ms`, which is not 0.
int TryConnectUnix(const std::string& path, int timeout_ms, UniqueFd& socket);

// Two connected stream sockets, close-on-exec.
Result<std::pair<UniqueFd, UniqueFd>> UnixPair();

// Sends all bytes; descriptors travel with the first. No SIGPIPE.
Error SendRecord(int socket, std::span<const std::byte> bytes, std::span<const int> fds = {});

// Receives exactly bytes.size() bytes, and descriptors that came along (close-on-exec; more than kMaxPassedFds, or any
// where `fds` is null, is an error and all are closed). A peer that closed before the first byte is kUnavailable, one
// that closed in the middle kMalformed, and `timeout_ms` (-1: none) without all bytes kTimeout.
Error ReceiveRecord(int socket, std::span<std::byte> bytes, std::vector<UniqueFd>* fds, int timeout_ms);

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
std::optional<PeerCredentials> GetPeerCredentials(int socket);

// A pidfd of the process that connected: SO_PEERPIDFD where the kernel has it, else pidfd_open of the peer's pid.
Result<UniqueFd> GetPeerPidfd(int socket);

// Readable when the process of the pidfd has ended, or when the socket's other end has closed.
bool HasExited(int pidfd);
bool HasHungUp(int socket);

}  // namespace flagos
