// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/audit/auditor.h"

#include <sys/random.h>

#include <cstdio>
#include <utility>

#include "server/common/strings.h"
#include "server/daemon/control/users.h"
#include "server/daemon/version.h"

namespace flagos::daemon {
namespace {

constexpr auto kRefusalWindow = std::chrono::minutes(1);
constexpr uint32_t kRefusalsInWindow = 60;
constexpr size_t kMostUsers = 1024;  // that refusals are counted of

AuditActor ActorOf(uid_t uid, pid_t pid) { return {.uid = uid, .pid = pid, .user = UserName(uid)}; }

// "refused: why", in one line.
std::string Result(const absl::Status& status, const char* done) {
  if (status.ok()) return done;
  std::string text = Cat("refused: ", MessageOf(status));
  for (char& c : text) c = c == '\n' ? ';' : c;
  return text;
}

std::string RandomDigits() {
  uint32_t number = 0;
  (void)!::getrandom(&number, sizeof number, 0);
  char text[16];
  std::snprintf(text, sizeof text, "%08x", number);
  return text;
}

}  // namespace

AuditActor ActorOf(const Caller& caller) { return ActorOf(caller.uid, caller.pid); }

absl::StatusOr<std::unique_ptr<Auditor>> Auditor::Start(const Config& config) {
  std::unique_ptr<Auditor> auditor(new Auditor(config));
  if (config.audit.file.empty()) return auditor;
  auto log = AuditLog::Open(config.audit);
  if (!log.ok()) return log.status();
  auditor->log_ = *std::move(log);
  // The boot's own, so that no two operations of a log share an id.
  auditor->operations_ = Cat("op-", RandomDigits(), "-");
  return auditor;
}

void Auditor::watch(Supervisor& supervisor) {
  if (off()) return;
  supervisor_ = &supervisor;
  supervisor.add_listener([this](const Session& session, bool over) { session_changed(session, over); });
  supervisor.on_account({.refused = [this](const PeerCredentials& peer,
                                           const absl::Status& s) { attach_refused(peer, "", MessageOf(s)); },
                         .lease_ended = [this](const Lease& lease) { lease_ended(lease); }});
}

std::string Auditor::new_operation() { return Cat(operations_, next_operation_++); }

void Auditor::write(AuditRecord record) {
  if (in_request_) {
    held_.push_back(std::move(record));
  } else {
    log_->append(record);
  }
}

void Auditor::begin() {
  if (off()) return;
  in_request_ = true;
  request_ = new_operation();
}

void Auditor::write_request(AuditRecord record) {
  in_request_ = false;
  record.operation = request_;
  log_->append(record);
  for (const AuditRecord& held : std::exchange(held_, {})) log_->append(held);
}

void Auditor::daemon_started() {
  if (off()) return;
  log_->append({.operation = new_operation(),
                .actor = OwnActor(),
                .verb = "daemon.start",
                .after = {{"version", kVersion}, {"vendor", config_.devices.vendor}, {"socket", config_.daemon.listen}},
                .result = "done"});
}

void Auditor::daemon_stops(const AuditActor& actor, const std::string& reason) {
  if (off()) return;
  log_->append({.operation = new_operation(),
                .actor = actor,
                .verb = "daemon.stop",
                .after = {{"sessions", supervisor_ == nullptr ? 0 : supervisor_->live_sessions()}},
                .reason = reason,
                .result = "done"});
}

void Auditor::lease_opened(const Caller& caller, const std::string& name, double ttl,
                           const absl::StatusOr<const Lease*>& lease) {
  if (off()) return;
  AuditRecord record{.actor = ActorOf(caller), .verb = "lease.open", .result = Result(lease.status(), "accepted")};
  record.after = {{"name", name}, {"ttl", ttl}};
  if (lease.ok()) {
    record.target = (*lease)->id;
    record.after["devices"] = (*lease)->devices;
  }
  write_request(std::move(record));
}

void Auditor::lease_closed(const Caller& caller, const std::string& id, const absl::StatusOr<uint32_t>& ended) {
  if (off()) return;
  AuditRecord record{.actor = ActorOf(caller), .verb = "lease.close", .target = id};
  record.result = Result(ended.status(), "accepted");
  if (ended.ok()) {
    record.after = {{"sessions_ended", *ended}};
    for (const auto& [number, session] : supervisor_->sessions()) {
      if (session->lease() == id && accepted_.contains(number)) accepted_[number] = request_;
    }
  }
  write_request(std::move(record));
}

void Auditor::session_killed(const Caller& caller, const std::string& id, double grace, const std::string& reason,
                             const absl::Status& status) {
  if (off()) return;
  AuditRecord record{.actor = ActorOf(caller), .verb = "session.kill", .target = id};
  record.after = {{"grace", grace}};
  record.reason = reason;
  record.result = Result(status, "accepted");
  if (status.ok()) {
    for (const auto& [number, session] : supervisor_->sessions()) {
      if (session->id() == id && accepted_.contains(number)) accepted_[number] = request_;
    }
  }
  write_request(std::move(record));
}

void Auditor::config_reloaded(const AuditActor& actor, const absl::StatusOr<std::vector<ConfigChange>>& changes) {
  if (off()) return;
  AuditRecord record{.actor = actor, .verb = "config.reload", .result = Result(changes.status(), "accepted")};
  if (changes.ok()) {
    record.before = nlohmann::ordered_json::object();
    record.after = nlohmann::ordered_json::object();
    for (const ConfigChange& change : *changes) {
      record.before[ValidUtf8(change.to.key)] = change.from;
      record.after[ValidUtf8(change.to.key)] = change.to.value;
    }
  }
  write_request(std::move(record));
}

void Auditor::session_changed(const Session& session, bool over) {
  const uint64_t number = session.number();
  const auto known = accepted_.find(number);
  if (known == accepted_.end() && session.state() == SessionState::kRunning) {
    const std::string operation = new_operation();
    accepted_.emplace(number, operation);
    return write({.operation = operation,
                  .actor = ActorOf(session.uid(), session.client_pid()),
                  .verb = session.started() < started_ ? "session.resume" : "session.attach",
                  .target = session.id(),
                  .after = {{"lease", session.lease()},
                            {"devices", session.devices()},
                            {"program", session.program()},
                            {"executor_pid", session.executor_pid()}},
                  .result = "accepted"});
  }
  if (!over) return;
  if (known == accepted_.end()) {
    return attach_refused({.pid = session.client_pid(), .uid = session.uid()}, session.id(), session.end_cause());
  }
  const bool lost = session.state() == SessionState::kFaulted;
  write({.operation = in_request_ ? request_ : known->second,
         .actor = ActorOf(session.uid(), session.client_pid()),
         .verb = "session.end",
         .target = session.id(),
         .after = {{"state", StateName(session.state())}, {"lease", session.lease()}},
         .reason = session.end_cause(),
         .result = lost ? "lost" : "ended"});
  accepted_.erase(known);
}

void Auditor::attach_refused(const PeerCredentials& peer, const std::string& target, const std::string& why) {
  const auto now = Clock::now();
  if (refusals_.size() > kMostUsers) refusals_.clear();
  Refusals& of_user = refusals_[peer.uid];
  if (of_user.count == 0 || now - of_user.since >= kRefusalWindow) {
    of_user.since = now;
    of_user.count = 0;
  }
  if (of_user.count >= kRefusalsInWindow) {
    ++of_user.suppressed;
    return;
  }
  ++of_user.count;
  AuditRecord record{.operation = new_operation(), .actor = ActorOf(peer.uid, peer.pid), .verb = "session.attach"};
  record.target = target;
  record.result = Result(absl::UnavailableError(why), "");
  if (of_user.suppressed > 0) record.after = {{"suppressed", std::exchange(of_user.suppressed, 0)}};
  write(std::move(record));
}

void Auditor::lease_ended(const Lease& lease) {
  write({.operation = in_request_ ? request_ : new_operation(),
         .actor = in_request_ ? AuditActor{.uid = lease.uid, .pid = 0, .user = UserName(lease.uid)} : OwnActor(),
         .verb = "lease.end",
         .target = lease.id,
         .before = {{"name", lease.name}, {"uid", lease.uid}, {"devices", lease.devices}},
         .reason = in_request_ ? "closed" : "its time has passed",
         .result = "ended"});
}

std::optional<AuditCounts> Auditor::counts() const {
  if (off()) return std::nullopt;
  return AuditCounts{.records = log_->records(), .failures = log_->failures()};
}

}  // namespace flagos::daemon
