// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/control/service.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "proto/wire/attach.h"
#include "proto/wire/records.h"
#include "server/common/log.h"
#include "server/common/strings.h"
#include "server/daemon/clients/peer.h"
#include "server/daemon/config/message.h"
#include "server/daemon/control/view.h"
#include "server/daemon/version.h"

namespace flagos::daemon {
namespace {

constexpr size_t kMaxWatchers = 64;
constexpr size_t kMaxWatchersPerUser = 16;  // so that one user does not keep the others out
constexpr double kShortestInterval = 0.1;
constexpr double kLongestInterval = 3600;

grpc::Status ToGrpc(const absl::Status& status) {
  // The numbers are the same in both.
  return status.ok() ? grpc::Status::OK : grpc::Status(static_cast<grpc::StatusCode>(status.code()), MessageOf(status));
}

const grpc::Status& Stopping() {
  static const auto* const status =
      new grpc::Status(grpc::StatusCode::UNAVAILABLE, "flagosd is stopping; try again once it runs");
  return *status;
}

// A watcher that only says why there is none.
class RefusedWatcher final : public grpc::ServerWriteReactor<v1::SessionEvent> {
 public:
  explicit RefusedWatcher(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

ControlService::ControlService(EventLoop& loop, Supervisor& supervisor, ConfigReload& reload, Auditor& auditor)
    : loop_(loop), supervisor_(supervisor), reload_(reload), auditor_(auditor) {}

void ControlService::stop() {
  stopped_ = true;
  while (!watchers_.empty()) watchers_.begin()->first->finish(Stopping());
}

ControlService::Reactor* ControlService::answer(Context* context, Handler handler) {
  Reactor* const reactor = context->DefaultReactor();
  const auto caller = CallerOf(context->peer());
  if (!caller.ok()) {
    reactor->Finish(ToGrpc(caller.status()));
    return reactor;
  }
  loop_.post([this, reactor, caller = *caller, handler = std::move(handler)] {
    if (stopped_) return reactor->Finish(Stopping());
    handler(caller, reactor);
  });
  return reactor;
}

ControlService::Reactor* ControlService::GetVersion(Context* context, const v1::GetVersionRequest* request,
                                                    v1::GetVersionResponse* response) {
  return answer(context, [this, request, response](const Caller&, Reactor* reactor) {
    response->set_version(kVersion);
    response->mutable_protocol()->set_min(kProtocolVersionMin);
    response->mutable_protocol()->set_max(kProtocolVersionMax);
    for (const FeatureName& feature : kFeatureNames) response->add_features(feature.name);
    response->set_pid(static_cast<uint32_t>(::getpid()));
    response->set_uptime(std::chrono::duration<double>(Clock::now() - started_).count());
    if (request->has_supported()) {
      const uint32_t newest = std::min<uint32_t>(request->supported().max(), kProtocolVersionMax);
      if (newest < std::max<uint32_t>(request->supported().min(), kProtocolVersionMin)) {
        return reactor->Finish(
            grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                         Cat("no protocol version in common\nflagosd speaks ", kProtocolVersionMin, " to ",
                             kProtocolVersionMax, " and the caller ", request->supported().min(), " to ",
                             request->supported().max(), "\nuse the flagosctl of flagosd's version, ", kVersion)));
      }
      response->set_chosen(newest);
    }
    reactor->Finish(grpc::Status::OK);
  });
}

ControlService::Reactor* ControlService::ListDevices(Context* context, const v1::ListDevicesRequest*,
                                                     v1::ListDevicesResponse* response) {
  return answer(context, [this, response](const Caller&, Reactor* reactor) {
    supervisor_.when_devices_known([this, response, reactor](const absl::Status& status) {
      if (status.ok()) Show(supervisor_, response);
      reactor->Finish(ToGrpc(status));
    });
  });
}

ControlService::Reactor* ControlService::OpenLease(Context* context, const v1::OpenLeaseRequest* request,
                                                   v1::OpenLeaseResponse* response) {
  return answer(context, [this, request, response](const Caller& caller, Reactor* reactor) {
    supervisor_.when_devices_known([this, request, response, caller, reactor](const absl::Status& known) {
      if (!known.ok()) return reactor->Finish(ToGrpc(known));
      const DeviceSet devices(request->devices().begin(), request->devices().end());
      std::optional<MemoryLimit> memory;
      if (!request->memory().empty()) {
        const auto limit = ParseMemoryLimit(request->memory());
        if (!limit.ok()) return reactor->Finish(ToGrpc(limit.status()));
        memory = *limit;
      }
      ShareTerms share;
      if (request->weight() != 0) share.weight = request->weight();
      if (request->max_percent() != 0) share.max_percent = request->max_percent();
      if (v1::ShareClass_IsValid(request->share_class()) && request->share_class() != v1::SHARE_CLASS_UNSPECIFIED) {
        share.share_class = static_cast<ShareClass>(request->share_class() - 1);
      }
      if (!request->dry_run()) auditor_.begin();
      const auto lease =
          supervisor_.open_lease(caller, request->name(), devices, request->ttl(), memory, share, request->dry_run());
      if (!request->dry_run()) auditor_.lease_opened(caller, request->name(), request->ttl(), lease);
      if (lease.ok() && *lease != nullptr) {
        response->set_lease((*lease)->id);
        response->set_token(ToHex((*lease)->token));
        response->set_folder(supervisor_.container_folder(**lease));
      }
      reactor->Finish(ToGrpc(lease.status()));
    });
  });
}

ControlService::Reactor* ControlService::CloseLease(Context* context, const v1::CloseLeaseRequest* request,
                                                    v1::CloseLeaseResponse* response) {
  return answer(context, [this, request, response](const Caller& caller, Reactor* reactor) {
    if (!request->dry_run()) auditor_.begin();
    const auto ended = supervisor_.close_lease(caller, request->lease(), request->dry_run());
    if (!request->dry_run()) auditor_.lease_closed(caller, request->lease(), ended);
    if (ended.ok()) response->set_sessions_ended(*ended);
    reactor->Finish(ToGrpc(ended.status()));
  });
}

ControlService::Reactor* ControlService::ListLeases(Context* context, const v1::ListLeasesRequest*,
                                                    v1::ListLeasesResponse* response) {
  return answer(context, [this, response](const Caller&, Reactor* reactor) {
    for (const auto& [id, lease] : supervisor_.leases().all()) Show(lease, response->add_leases());
    reactor->Finish(grpc::Status::OK);
  });
}

ControlService::Reactor* ControlService::ListSessions(Context* context, const v1::ListSessionsRequest* request,
                                                      v1::ListSessionsResponse* response) {
  return answer(context, [this, request, response](const Caller&, Reactor* reactor) {
    for (const auto& [number, session] : supervisor_.sessions()) {
      if (request->all() || session->state() != SessionState::kEnded) Show(*session, response->add_sessions());
    }
    reactor->Finish(grpc::Status::OK);
  });
}

ControlService::Reactor* ControlService::ShowSession(Context* context, const v1::ShowSessionRequest* request,
                                                     v1::ShowSessionResponse* response) {
  return answer(context, [this, request, response](const Caller&, Reactor* reactor) {
    const auto session = supervisor_.find(request->id());
    if (session.ok()) Show(**session, response->mutable_session());
    reactor->Finish(ToGrpc(session.status()));
  });
}

ControlService::Reactor* ControlService::ShowConfig(Context* context, const v1::ShowConfigRequest*,
                                                    v1::ShowConfigResponse* response) {
  return answer(context, [this, response](const Caller&, Reactor* reactor) {
    Show(reload_, response);
    reactor->Finish(grpc::Status::OK);
  });
}

ControlService::Reactor* ControlService::ReloadConfig(Context* context, const v1::ReloadConfigRequest* request,
                                                      v1::ReloadConfigResponse* response) {
  return answer(context, [this, request, response](const Caller& caller, Reactor* reactor) {
    // Also where nothing would change: the answer has what stands in files that the caller may not read.
    absl::StatusOr<std::vector<ConfigChange>> changes = absl::PermissionDeniedError(
        "your user may not reload the configuration\nonly root and the user of flagosd may\nask whoever runs flagosd");
    if (!request->dry_run()) auditor_.begin();
    if (caller.may_configure()) {
      if (!request->dry_run()) log::Info("configuration reload", {{"by_uid", caller.uid}});
      changes = request->dry_run() ? reload_.compare() : reload_.reload();
    }
    if (!request->dry_run()) auditor_.config_reloaded(ActorOf(caller), changes);
    if (changes.ok()) Show(*changes, response);
    reactor->Finish(ToGrpc(changes.status()));
  });
}

ControlService::Reactor* ControlService::KillSession(Context* context, const v1::KillSessionRequest* request,
                                                     v1::KillSessionResponse* response) {
  return answer(context, [this, request, response](const Caller& caller, Reactor* reactor) {
    const auto found = supervisor_.find(request->id());
    const std::string id = found.ok() ? (*found)->id() : request->id();
    auditor_.begin();
    const absl::Status status = supervisor_.kill(caller, request->id(), request->grace(), request->reason(),
                                                 [response, reactor](absl::StatusOr<const Session*> ended) {
                                                   if (ended.ok()) Show(**ended, response->mutable_session());
                                                   reactor->Finish(ToGrpc(ended.status()));
                                                 });
    auditor_.session_killed(caller, id, request->grace(), request->reason(), status);
    if (!status.ok()) reactor->Finish(ToGrpc(status));
  });
}

grpc::ServerWriteReactor<v1::SessionEvent>* ControlService::WatchSessions(Context* context,
                                                                          const v1::WatchSessionsRequest* request) {
  const auto caller = CallerOf(context->peer());
  if (!caller.ok()) return new RefusedWatcher(ToGrpc(caller.status()));
  const double interval = request->interval();
  if (!(interval == 0 || (interval >= kShortestInterval && interval <= kLongestInterval))) {
    return new RefusedWatcher(
        {grpc::StatusCode::INVALID_ARGUMENT, "interval must be 0 (changes of state only) or from 0.1 to 3600 seconds"});
  }
  auto* const watcher = new SessionWatcher(loop_, supervisor_, watchers_, caller->uid);
  loop_.post([this, watcher, interval, uid = caller->uid] {
    if (stopped_) return watcher->finish(Stopping());
    const auto of_user = static_cast<size_t>(
        std::count_if(watchers_.begin(), watchers_.end(), [&](const auto& entry) { return entry.second == uid; }));
    if (watchers_.size() >= kMaxWatchers || of_user >= kMaxWatchersPerUser) {
      const bool all = of_user < kMaxWatchersPerUser;
      return watcher->finish(
          {grpc::StatusCode::RESOURCE_EXHAUSTED,
           Cat(all ? kMaxWatchers : of_user, " watches ", all ? "" : "of your user ", "are open already; end some")});
    }
    watcher->start(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval)));
  });
  return watcher;
}

}  // namespace flagos::daemon
