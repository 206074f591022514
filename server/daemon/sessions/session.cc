// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/sessions/session.h"

#include <numeric>
#include <utility>

#include "proto/shm/futex.h"
#include "server/common/executor_channel.h"
#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/config/units.h"
#include "server/daemon/state/process_identity.h"
#include "server/daemon/time.h"

namespace flagos::daemon {
namespace {

// An executor sees by itself that its client is gone. One that does not end within this is killed, which leaves a
// second for the kernel to take everything back within the two that are promised.
constexpr auto kGoneGrace = std::chrono::milliseconds(800);
// A client that lives and closed this connection alone: the running call may end. Where the session's liveness socket
// was closed with it, which is the rule, the executor ends at once.
constexpr auto kClosedGrace = std::chrono::seconds(5);

}  // namespace

Session::Session(EventLoop& loop, const Config& config, SessionRequest request, ClientConnection connection,
                 SessionObserver& observer)
    : loop_(loop),
      config_(config),
      limits_(config.session),
      request_(std::move(request)),
      observer_(observer),
      id_(Cat("s", request_.number)),
      peer_(connection.peer()),
      started_(UnixSeconds()),
      started_monotonic_(MonotonicNanoseconds()),
      machine_(id_),
      connection_(std::move(connection)),
      share_(request_.lease_share->terms()),
      lease_memory_(std::move(request_.lease_memory)),
      lease_share_(std::move(request_.lease_share)),
      vendor_(config.devices.vendor),
      devices_(request_.device_set) {}

Session::Session(EventLoop& loop, const Config& config, RecoveredSession recovered, SessionObserver& observer)
    : loop_(loop),
      config_(config),
      limits_([&] {
        SessionConfig limits = config.session;
        limits.ring = recovered.ring_bytes;
        limits.arena = recovered.arena_bytes;
        return limits;
      }()),
      request_{.number = recovered.stored.number(),
               .lease = recovered.stored.lease(),
               .lease_memory = {},
               .lease_share = {},
               .device_set = recovered.executor->device_set(),
               .terms = {},
               .owner = recovered.stored.uid(),
               .container = Printable(recovered.stored.container()),
               .program = Printable(recovered.stored.program()),
               .client_torch = Printable(recovered.stored.client_torch())},
      observer_(observer),
      id_(Cat("s", request_.number)),
      peer_{recovered.stored.client_process().pid(), recovered.stored.uid(), recovered.stored.gid()},
      started_(recovered.stored.started()),
      started_monotonic_(recovered.stored.started_monotonic()),
      machine_(id_),
      client_(std::move(recovered.client)),
      share_(recovered.lease_share->terms()),
      lease_memory_(std::move(recovered.lease_memory)),
      lease_share_(std::move(recovered.lease_share)),
      executor_(std::move(recovered.executor)),
      regions_(std::move(recovered.regions)),
      answered_(true),
      executor_pid_(executor_->pid()),
      vendor_(executor_->vendor()),
      executor_torch_(executor_->torch_version()),
      devices_(recovered.stored.devices().begin(), recovered.stored.devices().end()) {
  lease_memory_->limit(devices_, executor_->devices());
  executor_->set_owner(this);
  machine_.advance(SessionState::kAttaching);
  machine_.advance(SessionState::kRunning);
  client_watch_ = loop_.watch(client_.get(), EPOLLIN, [this](uint32_t) {
    client_watch_.cancel();
    client_gone(kClientExited);
  });
}

v1::StoredSession Session::stored() const {
  v1::StoredSession stored;
  stored.set_number(request_.number);
  stored.set_lease(request_.lease);
  stored.set_executor(executor_->id());
  stored.set_unit(executor_->unit());
  const auto store = [](pid_t pid, v1::StoredProcess& process) {
    const auto identity = Identify(pid);
    if (!identity) return;
    process.set_pid(identity->pid);
    process.set_start_time(identity->start_time);
  };
  store(executor_pid_, *stored.mutable_executor_process());
  store(peer_.pid, *stored.mutable_client_process());
  stored.set_uid(request_.owner);
  stored.set_container(request_.container);
  stored.set_gid(peer_.gid);
  stored.mutable_device_set()->Add(request_.device_set.begin(), request_.device_set.end());
  stored.mutable_devices()->Add(devices_.begin(), devices_.end());
  stored.set_program(request_.program);
  stored.set_client_torch(request_.client_torch);
  stored.set_started(started_);
  stored.set_memory_limit(FormatMemoryLimit(lease_memory_->limit()));
  stored.set_started_monotonic(started_monotonic_);
  return stored;
}

bool Session::client_exited() const { return HasExited(connection_ ? connection_->pidfd() : client_.get()); }

void Session::start(ExecutorPool& pool) {
  connection_->watch(loop_, [this](const char* what) { client_gone(what); });
  ticket_ = pool.take(request_.device_set,
                      [this](absl::StatusOr<std::unique_ptr<ExecutorProcess>> executor) { give(std::move(executor)); });
}

void Session::give(absl::StatusOr<std::unique_ptr<ExecutorProcess>> executor) {
  ticket_ = {};
  if (!executor.ok()) return refuse(FromStatus(executor.status()));
  executor_ = *std::move(executor);
  executor_->set_owner(this);
  executor_pid_ = executor_->pid();
  vendor_ = executor_->vendor();
  executor_torch_ = executor_->torch_version();
  if (devices_.empty()) {
    devices_.resize(executor_->devices().size());
    std::iota(devices_.begin(), devices_.end(), 0u);
  }
  advance(SessionState::kAttaching);
  if (const absl::Status status = assign(); !status.ok()) return refuse(FromStatus(status));
  deadline_ = loop_.after(config_.pool.start_timeout, [this, limit = config_.pool.start_timeout] {
    refuse(MakeError(ErrorCode::kTimeout, Cat("the executor did not take the session within ", FormatDuration(limit),
                                              "; attach again, and see flagosd's log for what it printed")));
  });
}

absl::Status Session::assign() {
  auto regions = SessionRegions::Create(limits_, fds_);
  if (!regions.ok()) return regions.status();
  regions_ = *std::move(regions);
  auto liveness = ToStatusOr(UnixPair());
  if (!liveness.ok()) return liveness.status();
  client_liveness_ = std::move(liveness->first);

  lease_memory_->limit(devices_, executor_->devices());
  Assignment assignment;
  assignment.session = request_.number;
  assignment.ring_bytes = limits_.ring;
  assignment.arena_bytes = limits_.arena;
  assignment.lease_entry = lease_share_->entry();
  assignment.flags = config_.embedded ? kEndWithDaemon : 0;
  assignment.descriptors[kChannelRing] = fds_.ring_read_only.get();
  assignment.descriptors[kChannelExecutor] = fds_.executor.get();
  assignment.descriptors[kChannelArena] = fds_.arena.get();
  assignment.descriptors[kChannelLiveness] = liveness->second.get();
  assignment.descriptors[kChannelClient] = connection_->pidfd();
  assignment.descriptors[kChannelLease] = lease_memory_->fd();
  assignment.descriptors[kChannelArbiter] = lease_share_->page().fd();
  observer_.session_assigning(*this);
  return ToStatus(executor_->assign(assignment));
}

void Session::executor_ready(ExecutorProcess& executor, const Error&) { executor.kill(); }  // told the pool already

void Session::executor_assigned(ExecutorProcess&, const Error& error) {
  if (state() != SessionState::kAttaching) return;
  if (!error.ok()) return refuse(error);
  open_to_client();
}

void Session::open_to_client() {
  AttachReply reply = MakeAttachReply(Error::Ok());
  reply.version = request_.terms.version;
  reply.features = request_.terms.features;
  reply.session = request_.number;
  reply.generation = 1;
  reply.device_count = static_cast<uint32_t>(executor_->devices().size());
  reply.ring_bytes = limits_.ring;
  reply.arena_bytes = limits_.arena;
  reply.descriptors = kAttachFdCount;
  reply.executor_pid = static_cast<uint32_t>(executor_pid_);
  CopyText(reply.vendor, vendor_);
  CopyText(reply.executor_torch, executor_torch_);
  CopyText(reply.session_name, id_);
  int fds[kAttachFdCount];
  fds[kRingFd] = fds_.ring.get();
  fds[kExecutorFd] = fds_.executor_read_only.get();
  fds[kArenaFd] = fds_.arena.get();
  fds[kLivenessFd] = client_liveness_.get();
  answered_ = true;
  const bool sent = connection_->reply(reply, executor_->devices(), fds);
  fds_ = {};
  client_liveness_.reset();
  deadline_.cancel();
  advance(SessionState::kRunning);
  log::Info("session started", {{"session", id_},
                                {"lease", lease()},
                                {"uid", uid()},
                                {"pid", peer_.pid},
                                {"program", program()},
                                {"executor", executor_->id()},
                                {"executor_pid", executor_pid_}});
  if (!sent) client_gone(kClientClosed);
}

void Session::refuse(const Error& error) {
  tell_client(error);
  cause_ = Cat("not attached: ", error.message);
  if (executor_ == nullptr) return finish(SessionState::kEnded);
  drain(cause_, error.message, Clock::duration::zero());
}

// Whatever ends the session, a client that waits for its reply gets one.
void Session::tell_client(const Error& error) {
  if (std::exchange(answered_, true)) return;
  connection_->reply(MakeRefusal(error));
}

void Session::client_gone(const char* what) {
  if (executor_ == nullptr) {
    cause_ = what;
    return finish(SessionState::kEnded);
  }
  const bool exited = what == kClientExited || client_exited();
  if (state() != SessionState::kDraining) {
    drain(exited ? kClientExited : what, what, exited ? Clock::duration(kGoneGrace) : Clock::duration(kClosedGrace));
  } else if (exited) {
    deadline_ = loop_.after(kGoneGrace, [this] { executor_->kill(); });  // nobody is left to wait for a longer grace
  }
}

void Session::end(const std::string& reason, Clock::duration grace) {
  if (over()) return;
  if (executor_ == nullptr) return refuse(MakeError(ErrorCode::kUnavailable, reason));
  drain(reason, reason, grace);
}

void Session::drain(const std::string& cause, const std::string& reason, Clock::duration grace) {
  cause_ = cause;
  tell_client(MakeError(ErrorCode::kUnavailable, reason));
  if (state() != SessionState::kDraining) advance(SessionState::kDraining);
  if (grace == Clock::duration::zero()) return executor_->kill();
  executor_->end(reason);
  deadline_ = loop_.after(grace, [this] {
    log::Warn("executor did not end when asked and is killed", {{"session", id_}, {"executor", executor_->id()}});
    executor_->kill();
  });
}

void Session::executor_ending(ExecutorProcess&, const std::string& cause) {
  if (state() == SessionState::kDraining) return;
  cause_ = cause.empty() ? "executor ended" : cause;
  deadline_ = loop_.after(kGoneGrace, [this] { executor_->kill(); });
}

void Session::executor_exited(ExecutorProcess&, const ExitStatus& status) {
  const bool in_order =
      (status.clean() || !status.known) && regions_ && regions_->executor_state() == ExecutorState::kEnded;
  const bool lost = state() != SessionState::kDraining && !in_order;
  if (lost) cause_ = Cat("executor ", status.describe(), cause_.empty() ? "" : "; ", cause_);
  if (!answered_) {
    const std::string output = executor_->last_output();
    tell_client(MakeError(ErrorCode::kUnavailable, Cat("the ", cause_, " while it took the session; attach again",
                                                       output.empty() ? "" : ". The last that it printed:\n", output)));
  }
  if (regions_) regions_->tell_lost(status);
  finish(lost ? SessionState::kFaulted : SessionState::kEnded);
}

void Session::finish(SessionState to) {
  if (regions_) last_figures_ = figures();
  // A process that ends closes its connection a moment before its pidfd tells.
  if (cause_ == kClientClosed && connection_ && client_exited()) cause_ = kClientExited;
  ended_ = UnixSeconds();
  deadline_.cancel();
  ticket_ = {};
  connection_.reset();
  client_watch_.cancel();
  client_.reset();
  regions_.reset();
  fds_ = {};
  client_liveness_.reset();
  executor_.reset();
  lease_memory_->reap();
  last_quota_ = memory_quota();
  lease_memory_.reset();
  last_throttled_ = throttled();
  lease_share_->page().reap();
  lease_share_.reset();
  busy_ratio_ = 0;
  machine_.advance(to);
  const bool faulted = to == SessionState::kFaulted;
  log::Write(faulted ? log::Level::kError : log::Level::kInfo, faulted ? "session lost its executor" : "session ended",
             {{"session", id_},
              {"cause", cause_},
              {"last_operator", last_figures_.last_operator},
              {"last_sequence", last_figures_.last_sequence},
              {"calls", last_figures_.calls}});
  observer_.session_over(*this);
}

void Session::advance(SessionState to) {
  if (machine_.advance(to)) observer_.session_changed(*this);
}

void Session::tick() {
  if (!regions_ || (state() != SessionState::kRunning && state() != SessionState::kIdle)) return;
  const SessionFigures now = figures();
  const bool idle = now.queue_bytes == 0 && now.idle * 1e9 >= static_cast<double>(config_.daemon.idle_after.count());
  if (idle != (state() == SessionState::kIdle)) advance(idle ? SessionState::kIdle : SessionState::kRunning);
  const auto at = Clock::now();
  const double elapsed = std::chrono::duration<double>(at - busy_at_).count();
  const double busy = (now.device_time - busy_seconds_) / elapsed;
  // Half of the weight is that of the last second, a quarter of the one before ...
  busy_ratio_ = std::min(1.0, std::max(0.0, busy)) / 2 + busy_ratio_ / 2;
  busy_seconds_ = now.device_time;
  busy_at_ = at;
}

void Session::let_go() {
  if (over()) return;
  if (state() == SessionState::kRunning || state() == SessionState::kIdle) {
    let_go_ = true;
    executor_->let_go();
    log::Info("session goes on without flagosd", {{"session", id_}, {"executor_pid", executor_pid_}});
  } else {
    end("flagosd is stopping; attach again once it runs", Clock::duration::zero());
  }
}

SessionFigures Session::figures() const {
  if (!regions_) return last_figures_;
  SessionFigures figures = regions_->figures(started_monotonic_, static_cast<uint32_t>(devices_.size()));
  figures.memory_used = 0;
  for (const uint32_t device : devices_) figures.memory_used += memory_used(device);
  figures.memory_peak = std::max(figures.memory_peak, figures.memory_used);
  return figures;
}

uint64_t Session::memory_used(uint32_t node_device) const {
  return lease_memory_ ? lease_memory_->used(request_.number, node_device) : 0;
}

double Session::throttled() const {
  return lease_share_ ? lease_share_->session(request_.number).throttled : last_throttled_;
}

uint64_t Session::memory_quota() const {
  if (!lease_memory_) return last_quota_;
  uint64_t quota = 0;
  for (const uint32_t device : devices_) quota += lease_memory_->quota(device);
  return quota;
}

}  // namespace flagos::daemon
