// SPDX-License-Identifier: Apache-2.0
// Who asked flagosd for what, and what became of it, as records of the audit log.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "server/daemon/audit/log.h"
#include "server/daemon/config/reload.h"
#include "server/daemon/event_loop.h"
#include "server/daemon/sessions/supervisor.h"
#include "server/daemon/time.h"

namespace flagos::daemon {

struct AuditCounts {
  uint64_t records = 0, failures = 0;
};

// Does nothing where the configuration names no file. Loop thread only.
class Auditor {
 public:
  // `config` is borrowed.
  static absl::StatusOr<std::unique_ptr<Auditor>> Start(const Config& config);

  // Sessions and leases; once, before clients come. The supervisor must not call any more once this is gone.
  void watch(Supervisor& supervisor);

  void daemon_started();
  void daemon_stops(const AuditActor& actor, const std::string& reason);

  // What a caller asked for, and what came of it. begin() comes before it is done, and what happens to sessions and
  // leases until the answer is recorded after it, under the same operation.
  void begin();
  void lease_opened(const Caller& caller, const std::string& name, double ttl,
                    const absl::StatusOr<const Lease*>& lease);
  void lease_closed(const Caller& caller, const std::string& id, const absl::StatusOr<uint32_t>& sessions_ended);
  void session_killed(const Caller& caller, const std::string& id, double grace, const std::string& reason,
                      const absl::Status& status);
  void config_reloaded(const AuditActor& actor, const absl::StatusOr<std::vector<ConfigChange>>& changes);

  // nullopt: there is no log.
  std::optional<AuditCounts> counts() const;

 private:
  explicit Auditor(const Config& config) : config_(config), started_(UnixSeconds()) {}
  bool off() const { return log_ == nullptr; }
  std::string new_operation();
  void write(AuditRecord record);
  // Ends what begin() began.
  void write_request(AuditRecord record);
  void session_changed(const Session& session, bool over);
  void attach_refused(const PeerCredentials& peer, const std::string& target, const std::string& why);
  void lease_ended(const Lease& lease);

  const Config& config_;
  const double started_;  // sessions older than this one were another flagosd's
  std::unique_ptr<AuditLog> log_;
  const Supervisor* supervisor_ = nullptr;
  std::string operations_;  // what ids of operations of this flagosd begin with
  uint64_t next_operation_ = 1;
  std::map<uint64_t, std::string> accepted_;  // sessions that run: the operation that will have ended each
  std::string request_;                       // the operation that begin() began
  std::vector<AuditRecord> held_;             // what happened in it
  bool in_request_ = false;

  // So that nobody can have the log rotated away: refusals of one user in a minute.
  struct Refusals {
    Clock::time_point since;
    uint32_t count = 0;
    uint64_t suppressed = 0;
  };
  std::unordered_map<uid_t, Refusals> refusals_;
};

AuditActor ActorOf(const Caller& caller);

}  // namespace flagos::daemon
