// SPDX-License-Identifier: Apache-2.0
// The control plane: flagos.v1.Control. gRPC's threads only carry messages; every answer is worked out on the loop.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>

#include "flagos/v1/control.grpc.pb.h"
#include "server/daemon/audit/auditor.h"
#include "server/daemon/config/reload.h"
#include "server/daemon/control/session_watcher.h"
#include "server/daemon/sessions/supervisor.h"

namespace flagos::daemon {

class ControlService final : public v1::Control::CallbackService {
 public:
  ControlService(EventLoop& loop, Supervisor& supervisor, ConfigReload& reload, Auditor& auditor);

  // Loop thread: every call that waits, and every later one, is answered with UNAVAILABLE.
  void stop();

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  // Works out an answer on the loop, and calls Finish() once.
  using Handler = std::function<void(const Caller& caller, Reactor* reactor)>;

  Reactor* GetVersion(Context*, const v1::GetVersionRequest*, v1::GetVersionResponse*) override;
  Reactor* ListDevices(Context*, const v1::ListDevicesRequest*, v1::ListDevicesResponse*) override;
  Reactor* OpenLease(Context*, const v1::OpenLeaseRequest*, v1::OpenLeaseResponse*) override;
  Reactor* CloseLease(Context*, const v1::CloseLeaseRequest*, v1::CloseLeaseResponse*) override;
  Reactor* ListLeases(Context*, const v1::ListLeasesRequest*, v1::ListLeasesResponse*) override;
  Reactor* ListSessions(Context*, const v1::ListSessionsRequest*, v1::ListSessionsResponse*) override;
  Reactor* ShowSession(Context*, const v1::ShowSessionRequest*, v1::ShowSessionResponse*) override;
  Reactor* ShowConfig(Context*, const v1::ShowConfigRequest*, v1::ShowConfigResponse*) override;
  Reactor* ReloadConfig(Context*, const v1::ReloadConfigRequest*, v1::ReloadConfigResponse*) override;
  Reactor* KillSession(Context*, const v1::KillSessionRequest*, v1::KillSessionResponse*) override;
  grpc::ServerWriteReactor<v1::SessionEvent>* WatchSessions(Context*, const v1::WatchSessionsRequest*) override;

  Reactor* answer(Context* context, Handler handler);

  EventLoop& loop_;
  Supervisor& supervisor_;
  ConfigReload& reload_;
  Auditor& auditor_;
  const Clock::time_point started_ = Clock::now();
  // Loop thread only.
  SessionWatcher::Registry watchers_;
  bool stopped_ = false;
};

}  // namespace flagos::daemon
