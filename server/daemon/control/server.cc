// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/control/server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

#include <algorithm>

#include "proto/socket/unix_socket.h"
#include "server/common/fd.h"
#include "server/common/log.h"

namespace flagos::daemon {
namespace {

constexpr int kMaxMessage = 64 << 10;  // bytes of a request; ours are far smaller
constexpr size_t kMemory = 16 << 20;   // bytes that gRPC may use for all connections
constexpr int kIdleMilliseconds = 300'000;
constexpr int kMaxStreams = 32;  // calls at a time on one connection
constexpr size_t kMaxConnections = 256;
constexpr size_t kMaxConnectionsPerUser = 128;
constexpr auto kStopDeadline = std::chrono::milliseconds(500);

uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return ::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Start(EventLoop& loop, Supervisor& supervisor,
                                                                    ConfigReload& reload, Auditor& auditor) {
  std::unique_ptr<ControlServer> control(new ControlServer(loop, supervisor, reload, auditor));
  grpc::ServerBuilder builder;
  builder.RegisterService(&control->service_);
  builder.SetMaxReceiveMessageSize(kMaxMessage);
  builder.SetResourceQuota(grpc::ResourceQuota("control").Resize(kMemory));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  control->server_ = builder.BuildAndStart();
  if (control->server_ == nullptr) {
    return absl::InternalError(
        "cannot start the control plane; gRPC's own message is above (GRPC_VERBOSITY=debug shows more)");
  }
  return control;
}

ControlServer::~ControlServer() {
  if (stopper_.joinable()) stopper_.join();
}

bool ControlServer::has_room(uid_t uid) {
  std::erase_if(connections_, [](const Connection& c) { return CookieOf(c.fd) != c.cookie; });
  const auto of_user =
      std::count_if(connections_.begin(), connections_.end(), [&](const Connection& c) { return c.uid == uid; });
  return connections_.size() < kMaxConnections && static_cast<size_t>(of_user) < kMaxConnectionsPerUser;
}

void ControlServer::add(UniqueFd socket) {
  const auto peer = GetPeerCredentials(socket.get());
  if (!peer || !has_room(peer->uid)) {
    log::Warn("control connection refused: too many are open", {{"uid", peer ? peer->uid : uid_t(-1)}});
    return;
  }
  connections_.push_back({socket.get(), CookieOf(socket.get()), peer->uid});
  grpc::AddInsecureChannelFromFd(server_.get(), socket.release());
}

void ControlServer::stop(std::function<void()> done) {
  service_.stop();
  // Shutdown() waits for calls that are finished on the loop, so it cannot run there.
  stopper_ = std::thread([this, done = std::move(done)] {
    server_->Shutdown(std::chrono::system_clock::now() + kStopDeadline);
    loop_.post(done);
  });
}

}  // namespace flagos::daemon
