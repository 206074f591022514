// SPDX-License-Identifier: Apache-2.0
// Where executors whose flagosd has gone find this one.
#pragma once

#include <functional>
#include <list>
#include <vector>

#include "proto/socket/unix_socket.h"
#include "proto/wire/attach.h"
#include "server/common/executor_channel.h"
#include "server/daemon/event_loop.h"

namespace flagos::daemon {

// What an executor says of itself: nothing of it is checked but that it is whole, its texts end, and its descriptors
// are as many as they should be.
struct RejoinRequest {
  ChannelRecord record{};
  std::vector<DeviceRecord> devices;
  std::vector<UniqueFd> fds;  // by RejoinDescriptor
  PeerCredentials peer;
  UniqueFd socket;  // non-blocking; becomes the channel
};

// Tells an executor why it is not taken; it does not ask again.
void RefuseRejoin(const RejoinRequest& request, const Error& error);

// Loop thread only.
class RejoinListener {
 public:
  // `socket` listens, is non-blocking, and stays its owner's.
  RejoinListener(EventLoop& loop, int socket, std::function<void(RejoinRequest)> taken);

 private:
  struct Pending {
    UniqueFd socket;
    PeerCredentials peer;
    Watch watch, deadline;
  };
  using Place = std::list<Pending>::iterator;

  void accept();
  void receive(Place place);

  EventLoop& loop_;
  const int socket_;
  const std::function<void(RejoinRequest)> taken_;
  std::list<Pending> pending_;
  Watch watch_;
};

}  // namespace flagos::daemon
