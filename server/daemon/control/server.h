// SPDX-License-Identifier: Apache-2.0
// The gRPC server around the control service. It listens nowhere: connections are handed to it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "server/daemon/control/service.h"

namespace flagos::daemon {

class ControlServer {
 public:
  static absl::StatusOr<std::unique_ptr<ControlServer>> Start(EventLoop& loop, Supervisor& supervisor,
                                                              ConfigReload& reload, Auditor& auditor);
  ~ControlServer();

  // Serves a connection; the socket is gRPC's from now on. Closes it instead where there are too many.
  void add(UniqueFd socket);
  // Loop thread: ends all calls and connections; `done` runs on the loop, which must go on meanwhile.
  void stop(std::function<void()> done);

 private:
  // A connection that was handed over. gRPC does not say when it closes one: the cookie, which no two sockets share,
  // tells whether the descriptor is still that connection's.
  struct Connection {
    int fd;
    uint64_t cookie;
    uid_t uid;
  };

  ControlServer(EventLoop& loop, Supervisor& supervisor, ConfigReload& reload, Auditor& auditor)
      : loop_(loop), service_(loop, supervisor, reload, auditor) {}
  bool has_room(uid_t uid);

  EventLoop& loop_;
  ControlService service_;
  std::vector<Connection> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::thread stopper_;
};

}  // namespace flagos::daemon
