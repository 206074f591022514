// SPDX-License-Identifier: Apache-2.0
// A client on its attach connection: who it is, and whether it is still there.
#pragma once

#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "proto/socket/unix_socket.h"
#include "proto/wire/attach.h"
#include "server/daemon/event_loop.h"

namespace flagos::daemon {

// Which socket a client came by.
enum class Door {
  kHost,       // the user decides
  kContainer,  // the token decides, and the container that it is used in
};

// Loop thread only. Move only. The socket is non-blocking.
class ClientConnection {
 public:
  // kUnavailable: the client has ended; kPermissionDenied: the kernel does not say who it is.
  static absl::StatusOr<ClientConnection> From(UniqueFd socket, Door door = Door::kHost);

  const PeerCredentials& peer() const { return peer_; }
  Door door() const { return door_; }
  int socket() const { return socket_.get(); }
  int pidfd() const { return pidfd_.get(); }

  // Sends the reply and what follows it. False where the client does not take it: then it is gone, or reads nothing.
  bool reply(const AttachReply& reply, std::span<const DeviceRecord> devices = {}, std::span<const int> fds = {});

  // `gone` is called, at most twice, with what happened: the process exited (its forked children may live on and hold
  // the connection), it closed the connection, or it broke the silence. The object may not be moved any more, but
  // destroyed within `gone`.
  void watch(EventLoop& loop, const std::function<void(const char* what)>& gone);
  // Ends watch(): the object may be moved again.
  void unwatch();

 private:
  ClientConnection(UniqueFd socket, UniqueFd pidfd, PeerCredentials peer, Door door)
      : socket_(std::move(socket)), pidfd_(std::move(pidfd)), peer_(peer), door_(door) {}

  UniqueFd socket_;
  UniqueFd pidfd_;
  PeerCredentials peer_;
  Door door_;
  Watch socket_watch_, pidfd_watch_;
};

// A reply that says no. A text that is too long for it loses its middle.
AttachReply MakeRefusal(const Error& error);

inline constexpr const char* kClientExited = "client exited";
inline constexpr const char* kClientClosed = "client ended the session";
inline constexpr const char* kClientSpoke = "client sent bytes on a connection that must stay silent";

}  // namespace flagos::daemon
