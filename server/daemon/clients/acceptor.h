// SPDX-License-Identifier: Apache-2.0
// Accepts connections, tells the two protocols of the socket apart, and reads attach requests, however slow or silent
// the clients are.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>

#include "proto/wire/attach.h"
#include "server/common/fd.h"
#include "server/daemon/clients/connection.h"
#include "server/daemon/event_loop.h"

namespace flagos::daemon {

inline constexpr auto kRequestDeadline = std::chrono::seconds(2);
inline constexpr size_t kMaxPending = 256;        // connections that have not said anything whole yet
inline constexpr size_t kMaxPendingPerUser = 64;  // so that one user does not keep the others out

// Loop thread only.
class Acceptor {
 public:
  struct Handlers {
    // A connection that starts with HTTP/2's preface; nothing was read from it.
    std::function<void(UniqueFd socket)> grpc;
    // A whole request, checked (attach.h), and the connection to answer it on.
    std::function<void(const AttachRequest& request, const AttachTerms& terms, ClientConnection connection)> attach;
    // add() only: the connection ended before it asked for anything.
    std::function<void()> closed;
  };

  Acceptor(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}

  // Accepts on a listening socket until stop(). The descriptor stays its owner's.
  // Those that come by Door::kContainer speak the attach protocol only.
  void listen(int socket, Door door = Door::kHost);
  // One connection that was made elsewhere, speaks the attach protocol only, and may take its time.
  absl::Status add(UniqueFd socket);
  // Accepts nothing more and closes what has not asked yet.
  void stop();

 private:
  struct Pending {
    uid_t uid = 0;
    UniqueFd socket;
    bool attach_only = false;
    Door door = Door::kHost;
    RecordReader reader{sizeof(AttachRequest)};
    bool reading = false;  // the first byte was an attach request's
    Watch watch, deadline;
  };
  using Place = std::list<Pending>::iterator;

  void accept(int listener, Door door);
  const char* full_for(uid_t uid) const;
  void pause(int listener);
  Place insert(UniqueFd socket, uid_t uid);
  void receive(Place place);
  void handle_request(Place place);
  void close(Place place);

  EventLoop& loop_;
  const Handlers handlers_;
  struct Listener {
    Door door;
    Watch watch;
  };
  std::map<int, Listener> listeners_;
  Watch resume_;
  bool told_full_ = false;  // the limit of open files was logged
  std::list<Pending> pending_;
};

}  // namespace flagos::daemon
