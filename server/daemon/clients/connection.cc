// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/clients/connection.h"

#include <utility>
#include <vector>

#include "server/common/fd.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {

absl::StatusOr<ClientConnection> ClientConnection::From(UniqueFd socket, Door door) {
  FLAGOS_RETURN_IF_ERROR(SetNonBlocking(socket.get()));
  const auto peer = GetPeerCredentials(socket.get());
  if (!peer) return absl::PermissionDeniedError("the kernel does not say who connected; connect by a unix socket");
  auto pidfd = GetPeerPidfd(socket.get());
  if (!pidfd.ok()) return ToStatus(pidfd.error());
  return ClientConnection(std::move(socket), std::move(pidfd).value(), *peer, door);
}

AttachReply MakeRefusal(const Error& error) {
  return MakeAttachReply(MakeError(error.code, Shorten(error.message, sizeof AttachReply::message - 1)));
}

bool ClientConnection::reply(const AttachReply& reply, std::span<const DeviceRecord> devices,
                             std::span<const int> fds) {
  std::vector<std::byte> bytes;
  const auto add = [&](std::span<const std::byte> part) { bytes.insert(bytes.end(), part.begin(), part.end()); };
  add(std::as_bytes(std::span(&reply, 1)));
  add(std::as_bytes(devices));
  // At most 10 KiB into a socket that is nearly empty: where it does not fit, the client is not reading.
  return SendRecord(socket_.get(), bytes, fds).ok();
}

void ClientConnection::watch(EventLoop& loop, const std::function<void(const char* what)>& gone) {
  // Each is told once: both stay readable for ever.
  socket_watch_ = loop.watch(socket_.get(), EPOLLIN | EPOLLRDHUP, [this, gone](uint32_t events) {
    socket_watch_.cancel();
    gone((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 ? kClientClosed : kClientSpoke);
  });
  pidfd_watch_ = loop.watch(pidfd_.get(), EPOLLIN, [this, gone](uint32_t) {
    pidfd_watch_.cancel();
    gone(kClientExited);
  });
}

void ClientConnection::unwatch() {
  socket_watch_.cancel();
  pidfd_watch_.cancel();
}

}  // namespace flagos::daemon
