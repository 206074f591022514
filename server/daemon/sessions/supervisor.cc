// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/sessions/supervisor.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/containers/cdi.h"

namespace flagos::daemon {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
// How long who attaches to a lease waits for its executors to come back; they try five times a second.
constexpr auto kRejoinPatience = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::seconds(1);  // of who asks for the devices; clients wait twice as long
constexpr auto kDrainGrace = std::chrono::seconds(5);
constexpr auto kStopSlack = std::chrono::seconds(1);
constexpr const char* kStopping = "flagosd is stopping; attach again once it runs";
constexpr const char* kNoControl = "flagosd is stopping; try again once it runs";
constexpr size_t kRemembered = 256;  // sessions that are over, at most
constexpr double kDefaultTtl = 3600;
constexpr double kLongestTtl = 366 * 24 * 3600.0;
constexpr double kLongestGrace = 3600;
constexpr size_t kLongestName = 128;    // bytes of a lease's
constexpr size_t kLongestReason = 300;  // of a kill's: it is told to the job, and remembered with the session

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

bool IsLimited(uid_t uid) { return uid != 0 && uid != ::geteuid(); }

}  // namespace

bool Caller::may_end(uid_t owner) const { return uid == owner || may_configure(); }

bool Caller::may_configure() const { return uid == 0 || uid == ::geteuid(); }

Supervisor::Supervisor(EventLoop& loop, const Config& config, StateStore* store)
    : loop_(loop),
      config_(config),
      store_(store),
      devices_(config.devices.include),
      pool_(loop, config,
            {.ready = [this](const ExecutorProcess& e) { devices_.update(e.device_set(), e.vendor(), e.devices()); },
             .failed = [this](const DeviceSet&, const absl::Status& status) { devices_.fail(status); }}),
      telemetry_(loop, config),
      leases_(loop) {
  leases_.on_end([this](const Lease& lease) {
    pool_.drop(lease.devices);
    if (store_ != nullptr) store_->remove_lease(lease.id);
    if (allocations_) allocations_->remove(lease.id);
    loop_.post([this] { write_cdi(); });  // once it is gone
    if (account_.lease_ended) account_.lease_ended(lease);
  });
}

void Supervisor::recover(int socket) {
  const v1::StoredCounters counters = store_->counters();
  next_session_ = std::max<uint64_t>(next_session_, counters.next_session());
  leases_.skip_to(counters.next_lease());
  restarts_ = counters.boot_id().empty() ? 0 : counters.restarts() + 1;
  allocations_.emplace(ContainersFolder(config_));
  std::set<std::string> open;
  for (const v1::StoredLease& stored : store_->leases()) {
    const auto lease = leases_.restore(stored);
    if (!lease.ok()) {
      log::Error("a lease is not taken over", {{"lease", stored.id()}, {"error", MessageOf(lease.status())}});
      continue;
    }
    ShareTerms terms;
    if (stored.weight() != 0) terms.weight = stored.weight();
    if (stored.max_percent() != 0) terms.max_percent = stored.max_percent();
    if (stored.share_class() != 0) terms.share_class = static_cast<ShareClass>(stored.share_class() - 1);
    auto share = open_share(terms);
    if (!share.ok()) share = open_share(ShareTerms());
    if (!share.ok()) {
      log::Error("a lease is not taken over", {{"lease", stored.id()}, {"error", MessageOf(share.status())}});
      leases_.close(**lease);
      continue;
    }
    (*lease)->share = *std::move(share);
    pool_.keep((*lease)->devices);
    offer_to_containers(**lease);
    open.insert((*lease)->id);
  }
  allocations_->keep_only(open);
  write_cdi();
  recovery_ = std::make_unique<Recovery>(loop_, pool_.spawner(), *store_,
                                         [this](RecoveredSession session) { adopt(std::move(session)); });
  recovery_->start(socket);
  next_session_ = std::max(next_session_, recovery_->last_session() + 1);
  pool_.skip_to(recovery_->last_executor());
  store_counters();
}

void Supervisor::store_counters() {
  if (store_ == nullptr) return;
  v1::StoredCounters counters;
  counters.set_next_session(next_session_);
  counters.set_next_lease(leases_.next());
  counters.set_restarts(restarts_);
  store_->put(std::move(counters));
}

void Supervisor::offer_to_containers(const Lease& lease) {
  if (!allocations_) return;
  const auto made = allocations_->create(lease.id, lease.uid, ToHex(lease.token));
  if (!made.ok())
    log::Error("containers cannot use a lease", {{"lease", lease.id}, {"error", MessageOf(made.status())}});
}

void Supervisor::write_cdi() {
  if (!allocations_ || config_.containers.cdi.empty()) return;
  std::map<std::string, std::string> leases;
  for (const Lease* const lease : leases_.opened()) leases[lease->id] = container_folder(*lease);
  if (const absl::Status written = WriteCdi(config_.containers.cdi, leases); !written.ok()) {
    log::Error("container runtimes are not told of leases", {{"error", MessageOf(written)}});
  }
}

std::string Supervisor::container_folder(const Lease& lease) const {
  return allocations_ ? allocations_->path_of(lease.id) : "";
}

void Supervisor::adopt(RecoveredSession recovered) {
  const uint64_t number = recovered.stored.number();
  const std::string lease_id = recovered.stored.lease();
  Lease* lease = leases_.find(lease_id);
  if (lease == nullptr) {
    const auto limit = ParseMemoryLimit(recovered.stored.memory_limit());
    const auto own = limit.ok() ? leases_.restore_own(lease_id, recovered.stored.uid(), *limit) : limit.status();
    if (!own.ok()) return log::Error("a session is not taken over", {{"error", MessageOf(own.status())}});
    lease = *own;
    lease->page_is_new = true;
  }
  // The first to come brings the page that all of the lease's executors have.
  if (lease->page_is_new) {
    auto page = LeaseMemoryPage::Adopt(std::move(recovered.lease_page), lease->memory->limit());
    if (!page.ok()) log::Error("a lease's page is not taken over", {{"error", MessageOf(page.status())}});
    if (page.ok()) lease->memory = *std::move(page);
    lease->page_is_new = false;
  }
  adopt_share(*lease, recovered);
  if (lease->share == nullptr) return log::Error("a session is not taken over", {{"session", number}});
  recovered.lease_memory = lease->memory;
  recovered.lease_share = lease->share;
  leases_.add_session(*lease, number);
  auto session = std::make_unique<Session>(loop_, config_, std::move(recovered), *this);
  Session& adopted = *session;
  sessions_.emplace(number, std::move(session));
  ++sessions_readopted_;
  log::Info("session goes on with this flagosd",
            {{"session", adopted.id()}, {"lease", lease_id}, {"executor_pid", adopted.executor_pid()}});
  session_changed(adopted);
  if (!tick_) tick_ = loop_.after(kTick, [this] { tick(); });
}

// The first to come brings the page in which all executors share devices' time.
void Supervisor::adopt_share(Lease& lease, RecoveredSession& recovered) {
  if (share_is_new_) {
    auto page = SharePage::Adopt(std::move(recovered.arbiter_page));
    if (!page.ok()) log::Error("the arbiter's page is not taken over", {{"error", MessageOf(page.status())}});
    if (page.ok()) {
      share_ = *std::move(page);
      share_->set_mode(config_.compute.mode);
      share_is_new_ = false;
      for (const Lease* const opened : leases_.opened()) {
        Lease& idle = *leases_.find(opened->id);
        if (idle.sessions.empty()) idle.share = LeaseShare::Open(share_, idle.share->terms());
      }
    }
  }
  if (!share_is_new_ && lease.sessions.empty()) {
    lease.share = LeaseShare::Adopt(share_, recovered.lease_entry);
  } else if (lease.share == nullptr) {
    const auto share = open_share(ShareTerms());
    if (share.ok()) lease.share = *share;
  }
}

void Supervisor::session_assigning(Session& session) {
  if (store_ != nullptr) store_->put(session.stored());
}

void Supervisor::start() {
  pool_.keep(devices_.default_set());
  pool_.probe(devices_.default_set());
  telemetry_.start();
}

void Supervisor::config_changed() {
  if (stopping_) return;
  if (share_ != nullptr) share_->set_mode(config_.compute.mode);
  pool_.config_changed();
  telemetry_.config_changed();
}

void Supervisor::attach(const AttachRequest& request, const AttachTerms& terms, ClientConnection connection,
                        Handled handled) {
  if (must_wait(request)) {
    const uint64_t number = next_delayed_++;
    Delayed& delayed =
        delayed_.try_emplace(number, Delayed{request, terms, std::move(connection), std::move(handled), {}})
            .first->second;
    delayed.timer = loop_.after(kRejoinPatience, [this, number] {
      auto node = delayed_.extract(number);
      Delayed& late = node.mapped();
      attach_now(late.request, late.terms, std::move(late.connection), std::move(late.handled));
    });
    return;
  }
  attach_now(request, terms, std::move(connection), std::move(handled));
}

// A lease's limit holds for all its sessions together, and what those of an earlier flagosd hold stands in a page that
// their executors are about to bring.
bool Supervisor::must_wait(const AttachRequest& request) {
  if (recovery_ == nullptr || request.token == kNoToken) return false;
  const Lease* const lease = leases_.peek(request.token);
  return lease != nullptr && lease->page_is_new && recovery_->awaits(lease->id);
}

void Supervisor::attach_now(const AttachRequest& request, const AttachTerms& terms, ClientConnection connection,
                            Handled handled) {
  const bool any_devices = static_cast<AttachKind>(request.kind) == AttachKind::kOpen && request.device_mask == 0;
  if (any_devices) return handled(open_session(request, terms, std::move(connection)));
  if (!devices_.settled()) return hold({request, terms, std::move(connection), std::move(handled), {}});
  devices_.when_known([&](const absl::Status& known) { handled(serve(request, terms, std::move(connection), known)); });
}

// Returns false: no session came of it.
bool Supervisor::refuse(ClientConnection& connection, const absl::Status& status) {
  log::Warn("attach refused",
            {{"uid", connection.peer().uid}, {"pid", connection.peer().pid}, {"error", MessageOf(status)}});
  connection.reply(MakeRefusal(FromStatus(status)));
  if (account_.refused) account_.refused(connection.peer(), status);
  return false;
}

void Supervisor::hold(Held held) {
  const uid_t uid = held.connection.peer().uid;
  const auto of_user = static_cast<size_t>(
      std::count_if(held_.begin(), held_.end(), [&](const Held& other) { return other.connection.peer().uid == uid; }));
  if (IsLimited(uid) && of_user >= config_.session.max_per_user) {
    return held.handled(refuse(
        held.connection,
        absl::ResourceExhaustedError(Cat(of_user,
                                         " processes of your user wait for the first executor, and more are not "
                                         "allowed ([session] max_per_user); attach again once flagosd is ready"))));
  }
  if (!std::exchange(awaits_devices_, true)) {
    devices_.when_known([this](const absl::Status& known) { serve_held(known); });
  }
  const auto place = held_.insert(held_.end(), std::move(held));
  place->connection.watch(loop_, [this, place](const char*) {
    const Handled handled = std::move(place->handled);
    held_.erase(place);
    handled(false);
  });
  // Who only asks is told that there is life here, and asks again. A client waits longer for a session.
  if (static_cast<AttachKind>(place->request.kind) != AttachKind::kDevices) return;
  place->patience = loop_.after(kPatience, [this, place] { tell_not_yet(place); });
}

void Supervisor::tell_not_yet(std::list<Held>::iterator place) {
  place->connection.unwatch();
  Held held = std::move(*place);
  held_.erase(place);
  AttachReply reply = MakeAttachReply(Error::Ok());
  reply.version = held.terms.version;
  reply.features = held.terms.features;
  held.connection.reply(reply);
  held.handled(false);
}

void Supervisor::serve_held(const absl::Status& known) {
  awaits_devices_ = false;
  for (Held& held : std::exchange(held_, {})) {
    held.connection.unwatch();
    held.handled(serve(held.request, held.terms, std::move(held.connection), known));
  }
}

bool Supervisor::serve(const AttachRequest& request, const AttachTerms& terms, ClientConnection connection,
                       const absl::Status& known) {
  if (!known.ok()) return refuse(connection, known);
  if (static_cast<AttachKind>(request.kind) == AttachKind::kOpen) {
    return open_session(request, terms, std::move(connection));
  }
  return answer_devices(request, terms, connection);
}

absl::StatusOr<Lease*> Supervisor::lease_for(const AttachRequest& request, const ClientConnection& connection) {
  if (connection.door() == Door::kHost) {
    if (request.token == kNoToken) return nullptr;
    return leases_.find(request.token, connection.peer().uid);
  }
  const auto container = CgroupOf(connection.peer().pid);
  if (!container.ok()) return container.status();
  // What was read is the caller's only if the number is still its own.
  if (HasExited(connection.pidfd())) return absl::UnavailableError("the client has ended");
  auto lease = leases_.find(request.token, *container);
  if (lease.ok() && store_ != nullptr) store_->put(LeaseTable::Store(**lease));
  return lease;
}

bool Supervisor::answer_devices(const AttachRequest& request, const AttachTerms& terms, ClientConnection& connection) {
  const auto lease = lease_for(request, connection);
  if (!lease.ok()) return refuse(connection, lease.status());
  const std::vector<DeviceRecord> records = devices_.records(*lease == nullptr ? DeviceSet() : (*lease)->devices);
  AttachReply reply = MakeAttachReply(Error::Ok());
  reply.version = terms.version;
  reply.features = terms.features;
  reply.device_count = static_cast<uint32_t>(records.size());
  CopyText(reply.vendor, devices_.vendor());
  connection.reply(reply, records);
  return false;
}

absl::Status Supervisor::check_session_limit(uid_t uid) const {
  if (!IsLimited(uid)) return absl::OkStatus();
  const auto of_user = static_cast<uint32_t>(std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return entry.second->uid() == uid && !entry.second->over();
  }));
  if (of_user < config_.session.max_per_user) return absl::OkStatus();
  return absl::ResourceExhaustedError(Cat("your user has ", of_user,
                                          " sessions, and more are not allowed ([session] "
                                          "max_per_user); end some: `flagosctl ps` shows them"));
}

absl::Status Supervisor::check_lease_limit(uid_t uid) const {
  const size_t of_user = leases_.opened_by(uid);
  if (!IsLimited(uid) || of_user < config_.session.max_leases_per_user) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      Cat("your user has ", of_user,
          " open leases, and more are not allowed ([session] max_leases_per_user); close "
          "some with `flagosctl lease close`, or open them for a shorter time"));
}

bool Supervisor::open_session(const AttachRequest& request, const AttachTerms& terms, ClientConnection connection) {
  auto lease = lease_for(request, connection);
  if (!lease.ok()) return refuse(connection, lease.status());
  if (must_wait(request)) {
    return refuse(connection,
                  absl::UnavailableError(
                      "processes of the lease that an earlier flagosd served do not answer, and what they hold counts; "
                      "end them, or open another lease (flagosctl lease open)"));
  }
  // A user in a container is nobody here: the session is its lease's.
  const bool contained = connection.door() == Door::kContainer;
  const uid_t uid = contained ? (*lease)->uid : connection.peer().uid;
  if (const absl::Status status = check_session_limit(uid); !status.ok()) return refuse(connection, status);
  const auto devices = devices_.choose(*lease == nullptr ? DeviceSet() : (*lease)->devices, request.device_mask);
  if (!devices.ok()) return refuse(connection, devices.status());
  if (stopping_) return refuse(connection, absl::UnavailableError(kStopping));

  if (*lease == nullptr) {
    auto share = open_share(ShareTerms());
    lease = share.ok() ? leases_.open_own(uid, config_.quota.default_memory) : share.status();
    if (lease.ok()) (*lease)->share = *std::move(share);
  }
  if (!lease.ok()) return refuse(connection, lease.status());
  const uint64_t number = next_session_++;
  ++sessions_begun_;
  leases_.add_session(**lease, number);
  auto session = std::make_unique<Session>(loop_, config_,
                                           SessionRequest{.number = number,
                                                          .lease = (*lease)->id,
                                                          .lease_memory = (*lease)->memory,
                                                          .lease_share = (*lease)->share,
                                                          .device_set = *devices,
                                                          .terms = terms,
                                                          .owner = uid,
                                                          .container = contained ? (*lease)->container->path : "",
                                                          .program = Printable(ReadText(request.name)),
                                                          .client_torch = Printable(ReadText(request.torch_version))},
                                           std::move(connection), *this);
  Session& opened = *session;
  sessions_.emplace(number, std::move(session));
  store_counters();
  // Embedded, there is one session: no other executor is worth its memory.
  if (config_.embedded) pool_.drop(devices_.default_set());
  opened.start(pool_);
  session_changed(opened);
  if (!tick_) tick_ = loop_.after(kTick, [this] { tick(); });
  return true;
}

absl::StatusOr<const Lease*> Supervisor::open_lease(const Caller& caller, const std::string& name,
                                                    const DeviceSet& devices, double ttl_seconds,
                                                    const std::optional<MemoryLimit>& memory, const ShareTerms& share,
                                                    bool dry_run) {
  FLAGOS_RETURN_IF_ERROR(check_not_stopping());
  FLAGOS_RETURN_IF_ERROR(devices_.check(devices));
  if (!(ttl_seconds >= 0 && ttl_seconds <= kLongestTtl)) {
    return absl::InvalidArgumentError(
        Cat("ttl must be from 0 (an hour) to ", static_cast<int64_t>(kLongestTtl), " seconds"));
  }
  if (name.size() > kLongestName) {
    return absl::InvalidArgumentError(
        Cat("a lease's name has at most ", kLongestName, " bytes, and this one ", name.size(), "; give a shorter one"));
  }
  FLAGOS_RETURN_IF_ERROR(check_lease_limit(caller.uid));
  if (dry_run) return nullptr;
  auto of_time = open_share(share);
  if (!of_time.ok()) return of_time.status();
  const double ttl = ttl_seconds == 0 ? kDefaultTtl : ttl_seconds;
  auto set = devices_.choose(devices, 0);
  auto lease = leases_.open(Printable(name), caller.uid, *std::move(set), Seconds(ttl),
                            memory.value_or(config_.quota.default_memory));
  if (!lease.ok()) return lease.status();
  (*lease)->share = *std::move(of_time);
  pool_.keep((*lease)->devices);
  if (store_ != nullptr) store_->put(LeaseTable::Store(**lease));
  offer_to_containers(**lease);
  write_cdi();
  store_counters();
  log::Info("lease opened", {{"lease", (*lease)->id},
                             {"name", (*lease)->name},
                             {"uid", caller.uid},
                             {"memory", FormatMemoryLimit((*lease)->memory->limit())}});
  return *lease;
}

absl::StatusOr<std::shared_ptr<LeaseShare>> Supervisor::open_share(const ShareTerms& terms) {
  if (terms.weight < 1 || terms.weight > kMaxWeight) {
    return absl::InvalidArgumentError(Cat("a weight must be from 1 to ", kMaxWeight));
  }
  if (terms.max_percent < 1 || terms.max_percent > 100) {
    return absl::InvalidArgumentError("a maximum must be from 1 to 100 percent");
  }
  if (share_ == nullptr) {
    auto page = SharePage::Create();
    if (!page.ok()) return page.status();
    share_ = *std::move(page);
    share_->set_mode(config_.compute.mode);
  }
  return LeaseShare::Open(share_, terms);
}

absl::StatusOr<uint32_t> Supervisor::close_lease(const Caller& caller, const std::string& id, bool dry_run) {
  FLAGOS_RETURN_IF_ERROR(check_not_stopping());
  Lease* const lease = leases_.find(id);
  if (lease == nullptr) return absl::NotFoundError(Cat("there is no lease ", id));
  if (!caller.may_end(lease->uid)) return absl::PermissionDeniedError(Cat("lease ", id, " is another user's"));
  const std::vector<uint64_t> numbers(lease->sessions.begin(), lease->sessions.end());
  if (dry_run) return static_cast<uint32_t>(numbers.size());
  leases_.close(*lease);
  for (const uint64_t number : numbers) sessions_.at(number)->end("its lease was closed", kDrainGrace);
  return static_cast<uint32_t>(numbers.size());
}

absl::Status Supervisor::kill(const Caller& caller, const std::string& id, double grace_seconds,
                              const std::string& reason, KillDone done) {
  FLAGOS_RETURN_IF_ERROR(check_not_stopping());
  const auto found = find(id);
  if (!found.ok()) return found.status();
  Session& session = **found;
  if (!caller.may_end(session.uid())) {
    return absl::PermissionDeniedError(
        Cat("session ", session.id(), " is another user's; its owner or root may end it"));
  }
  if (session.over()) {
    return absl::FailedPreconditionError(Cat("session ", session.id(), " is ", StateName(session.state()), " already"));
  }
  if (!(grace_seconds >= 0 && grace_seconds <= kLongestGrace)) {
    return absl::InvalidArgumentError(Cat("grace must be from 0 to ", static_cast<int>(kLongestGrace), " seconds"));
  }
  if (reason.empty()) return absl::InvalidArgumentError("a reason is required: the session's user is told it");
  if (reason.size() > kLongestReason) {
    return absl::InvalidArgumentError(
        Cat("a reason has at most ", kLongestReason, " bytes, and this one ", reason.size(), "; give a shorter one"));
  }
  log::Info("session kill",
            {{"session", session.id()}, {"by_uid", caller.uid}, {"grace", grace_seconds}, {"reason", reason}});
  kills_.emplace(session.number(), std::move(done));
  session.end(Cat("killed by uid ", caller.uid, ": ", Printable(reason)), Seconds(grace_seconds));
  return absl::OkStatus();
}

absl::StatusOr<Session*> Supervisor::find(const std::string& id) {
  Session* found = nullptr;
  std::string others;
  for (const auto& [number, session] : sessions_) {
    if (session->id() == id) return session.get();
    if (id.empty() || !session->id().starts_with(id)) continue;
    others += Cat(found == nullptr ? "" : ", ", session->id());
    found = found == nullptr ? session.get() : found;
  }
  if (found == nullptr) {
    return absl::NotFoundError(Cat("there is no session \"", Printable(id), "\"; `flagosctl ps` shows the sessions"));
  }
  if (others != found->id())
    return absl::InvalidArgumentError(Cat("\"", id, "\" may be any of ", others, "; write more of it"));
  return found;
}

uint64_t Supervisor::add_listener(SessionListener listener) {
  const uint64_t id = next_listener_++;
  listeners_.emplace(id, std::move(listener));
  return id;
}

void Supervisor::tell(const Session& session, bool over) {
  for (auto at = listeners_.begin(); at != listeners_.end();) (at++)->second(session, over);
}

void Supervisor::session_changed(Session& session) { tell(session, false); }

void Supervisor::session_over(Session& session) {
  const uint64_t number = session.number();
  if (session.state() == SessionState::kFaulted) ++sessions_lost_;
  if (store_ != nullptr) store_->remove_session(number);
  leases_.remove_session(session.lease(), number);
  tell(session, true);
  const auto [begin, end] = kills_.equal_range(number);
  for (auto at = begin; at != end; ++at) at->second(&session);
  kills_.erase(begin, end);
  forgets_[number] = loop_.after(std::chrono::duration_cast<Clock::duration>(config_.session.faulted_keep),
                                 [this, number] { forget(number); });
  // Never the one that calls: it is the newest. Its caller must still find it.
  if (forgets_.size() > kRemembered)
    forget(forgets_.begin()->first == number ? std::next(forgets_.begin())->first : forgets_.begin()->first);
  finish_stop();
}

void Supervisor::forget(uint64_t number) {
  forgets_.erase(number);
  sessions_.erase(number);
}

size_t Supervisor::live_sessions() const {
  return static_cast<size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& entry) { return !entry.second->over(); }));
}

void Supervisor::tick() {
  for (const auto& [number, session] : sessions_) session->tick();
  tick_ = {};
  if (live_sessions() > 0) tick_ = loop_.after(kTick, [this] { tick(); });
}

void Supervisor::stop(Stop how, std::function<void()> done) {
  stopping_ = true;
  stopped_ = std::move(done);
  for (const auto& [number, session] : sessions_) {
    if (how == Stop::kLetGo) {
      session->let_go();
    } else {
      session->end("flagosd stopped", kDrainGrace);
    }
  }
  telemetry_.stop();
  devices_.fail(absl::UnavailableError(kStopping));
  // Executors that the kernel cannot end are left to it.
  stop_deadline_ = loop_.after(kDrainGrace + kStopSlack, [this] {
    if (stopped_) end_stop();
  });
  pool_.stop([this] {
    pool_idle_ = true;
    finish_stop();
  });
}

void Supervisor::finish_stop() {
  const auto must_end = [](const auto& entry) { return entry.second->must_end(); };
  if (!stopped_ || !pool_idle_ || std::any_of(sessions_.begin(), sessions_.end(), must_end)) return;
  end_stop();
}

// The control plane ends after this, and waits for every call that is not answered.
void Supervisor::end_stop() {
  for (const auto& [number, done] : std::exchange(kills_, {})) done(absl::UnavailableError(kNoControl));
  loop_.post(std::exchange(stopped_, nullptr));
}

absl::Status Supervisor::check_not_stopping() const {
  return stopping_ ? absl::UnavailableError(kNoControl) : absl::OkStatus();
}

}  // namespace flagos::daemon
