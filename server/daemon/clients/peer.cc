// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/clients/peer.h"

#include <charconv>

#include "proto/socket/unix_socket.h"
#include "server/common/strings.h"

namespace flagos::daemon {

absl::StatusOr<Caller> CallerOf(std::string_view peer) {
  constexpr std::string_view kPrefix = "fd:";
  int fd = -1;
  if (peer.starts_with(kPrefix)) {
    const auto [end, error] = std::from_chars(peer.data() + kPrefix.size(), peer.data() + peer.size(), fd);
    if (error != std::errc() || end != peer.data() + peer.size()) fd = -1;
  }
  const auto credentials = fd < 0 ? std::nullopt : GetPeerCredentials(fd);
  if (!credentials) {
    return absl::UnauthenticatedError(
        Cat("the kernel does not say who called (", peer, "); call over flagosd's unix socket"));
  }
  return Caller{.uid = credentials->uid, .pid = credentials->pid};
}

}  // namespace flagos::daemon
