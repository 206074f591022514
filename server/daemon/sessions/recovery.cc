// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/sessions/recovery.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/executors/executor_pipes.h"
#include "server/daemon/state/process_identity.h"

namespace flagos::daemon {
namespace {

// An executor ends by itself when its client does; one that cannot is ended.
constexpr auto kOrphanGrace = std::chrono::seconds(2);

ProcessIdentity IdentityOf(const v1::StoredProcess& process) { return {process.pid(), process.start_time()}; }

uint64_t NumberOf(const std::string& executor) {
  uint64_t number = 0;
  if (!executor.empty()) std::from_chars(executor.data() + 1, executor.data() + executor.size(), number);
  return number;
}

}  // namespace

Recovery::Recovery(EventLoop& loop, Spawner& spawner, StateStore& store, Taken taken)
    : loop_(loop), spawner_(spawner), store_(store), taken_(std::move(taken)) {}

void Recovery::start(int socket) {
  for (v1::StoredSession& stored : store_.sessions()) {
    last_executor_ = std::max(last_executor_, NumberOf(stored.executor()));
    last_session_ = std::max(last_session_, stored.number());
    await(std::move(stored));
  }
  listener_ =
      std::make_unique<RejoinListener>(loop_, socket, [this](RejoinRequest request) { rejoin(std::move(request)); });
  if (!awaited_.empty()) log::Info("sessions of an earlier flagosd go on", {{"sessions", awaited_.size()}});
}

void Recovery::await(v1::StoredSession stored) {
  const uint64_t number = stored.number();
  Awaited& awaited = awaited_[number];
  UniqueFd executor = OpenProcess(IdentityOf(stored.executor_process()));
  awaited.client = OpenProcess(IdentityOf(stored.client_process()));
  awaited.stored = std::move(stored);
  if (!executor) return give_up(number, "its executor ended while no flagosd was there");
  awaited.executor =
      spawner_.adopt(awaited.stored.unit(), awaited.stored.executor_process().pid(), std::move(executor));
  awaited.executor->on_exit(loop_, [this, number](const ExitStatus& status) {
    give_up(number, Cat("its executor ", status.describe(), " before this flagosd had taken it"));
  });
  const auto orphaned = [this, number] {
    Awaited& entry = awaited_.at(number);
    entry.client_watch.cancel();
    entry.orphan = loop_.after(kOrphanGrace, [this, number] { end_orphan(number); });
  };
  if (!awaited.client) return orphaned();
  awaited.client_watch = loop_.watch(awaited.client.get(), EPOLLIN, [orphaned](uint32_t) { orphaned(); });
}

bool Recovery::awaits(const std::string& lease) const {
  return std::any_of(awaited_.begin(), awaited_.end(),
                     [&](const auto& entry) { return entry.second.stored.lease() == lease; });
}

void Recovery::give_up(uint64_t number, const std::string& why) {
  log::Info("session ended", {{"session", Cat("s", number)}, {"cause", why}});
  store_.remove_session(number);
  awaited_.erase(number);
}

void Recovery::end_orphan(uint64_t number) {
  const Awaited& awaited = awaited_.at(number);
  log::Warn("an executor that outlived its client and its flagosd is killed",
            {{"session", Cat("s", number)}, {"executor_pid", awaited.stored.executor_process().pid()}});
  awaited.executor->kill();  // its exit tells the rest
}

absl::StatusOr<RecoveredSession> Recovery::recover(RejoinRequest& request) {
  const auto found = awaited_.find(request.record.session);
  if (found == awaited_.end()) {
    return absl::NotFoundError("this flagosd does not know the session; it lasts as long as its client");
  }
  Awaited& awaited = found->second;
  // The process that the file names lives, or it would not be awaited: nobody else has its number.
  if (request.peer.pid != awaited.stored.executor_process().pid()) {
    return absl::PermissionDeniedError("another process has this session");
  }
  RecoveredSession session;
  auto regions = SessionRegions::Map(request.fds[kRejoinRing], request.fds[kRejoinExecutor], request.record.ring_bytes);
  if (!regions.ok()) return regions.status();
  auto output = MakeOutputPipe();
  if (!output.ok()) return output.status();

  ChannelRecord answer{};
  answer.kind = static_cast<uint32_t>(ChannelKind::kRejoined);
  answer.session = request.record.session;
  const int theirs = output->theirs.get();
  FLAGOS_RETURN_IF_ERROR(
      ToStatus(SendRecord(request.socket.get(), std::as_bytes(std::span(&answer, 1)), std::span(&theirs, 1))));

  session.stored = std::move(awaited.stored);
  session.regions = *std::move(regions);
  session.ring_bytes = request.record.ring_bytes;
  session.arena_bytes = request.record.arena_bytes;
  session.lease_page = std::move(request.fds[kRejoinLease]);
  session.arbiter_page = std::move(request.fds[kRejoinArbiter]);
  session.lease_entry = request.record.lease_entry;
  // Our own, where we can see the client.
  session.client = std::move(awaited.client ? awaited.client : request.fds[kRejoinClient]);
  session.executor = ExecutorProcess::Adopt(
      loop_, {std::move(awaited.executor), std::move(request.socket), std::move(output->ours)},
      session.stored.executor(), DeviceSet(session.stored.device_set().begin(), session.stored.device_set().end()),
      request.record, std::move(request.devices), nullptr);
  awaited_.erase(found);
  return session;
}

void Recovery::rejoin(RejoinRequest request) {
  auto session = recover(request);
  if (!session.ok()) return RefuseRejoin(request, FromStatus(session.status()));
  taken_(*std::move(session));
}

}  // namespace flagos::daemon
