// SPDX-License-Identifier: Apache-2.0
// One WatchSessions stream.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>

#include "flagos/v1/control.pb.h"
#include "server/daemon/sessions/supervisor.h"

namespace flagos::daemon {

// Deletes itself when gRPC is done with it. What gRPC calls on its threads is carried out on the loop; a reader that is
// slow gets the newest state of each session, not all that lay between.
class SessionWatcher final : public grpc::ServerWriteReactor<v1::SessionEvent> {
 public:
  // Of those that there are now, with their users, for the loop.
  using Registry = std::map<SessionWatcher*, uid_t>;

  SessionWatcher(EventLoop& loop, Supervisor& supervisor, Registry& registry, uid_t uid)
      : loop_(loop), supervisor_(supervisor), registry_(registry), uid_(uid) {}

  // Loop thread: tells what there is, then every change, and figures every `interval` unless that is zero.
  void start(Clock::duration interval);
  // Loop thread: ends the stream.
  void finish(const grpc::Status& status);

 private:
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  void add(const Session& session, v1::SessionEvent::Kind kind);
  void refresh(Clock::duration interval);
  void write_next();

  EventLoop& loop_;
  Supervisor& supervisor_;
  Registry& registry_;
  const uid_t uid_;

  // Loop thread only.
  uint64_t listener_ = 0;
  std::map<uint64_t, v1::SessionEvent> pending_;  // by session
  v1::SessionEvent current_;                      // gRPC reads it while a write is under way
  bool writing_ = false;
  bool finished_ = false;
  Watch timer_;
};

}  // namespace flagos::daemon
