// SPDX-License-Identifier: Apache-2.0
// Leases: who may attach to what. A lease that was opened has a token; a process that presents none gets a lease of its
// own that ends with its session.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "flagos/v1/state.pb.h"
#include "server/daemon/containers/cgroup.h"
#include "server/daemon/event_loop.h"
#include "server/daemon/executors/spec.h"
#include "server/daemon/sessions/lease_memory.h"
#include "server/daemon/sessions/share.h"

namespace flagos::daemon {

using Token = std::array<uint8_t, 32>;
inline constexpr Token kNoToken{};
std::string ToHex(const Token& token);

struct Lease {
  std::string id;    // "l1"
  std::string name;  // for display
  uid_t uid = 0;
  DeviceSet devices;  // empty: all
  Token token = kNoToken;
  std::shared_ptr<LeaseMemoryPage> memory;
  std::shared_ptr<LeaseShare> share;
  std::set<uint64_t> sessions;      // numbers of those that are not over
  uint64_t ends = 0;                // CLOCK_BOOTTIME nanoseconds, of one with a token
  std::optional<Cgroup> container;  // that its token was first used in; nobody else's from then on
  bool page_is_new = false;         // restored, and no executor has brought the page that it had
  bool expired = false;             // its time has passed; ends with its last session
  Watch expiry;
};

// Loop thread only.
class LeaseTable {
 public:
  explicit LeaseTable(EventLoop& loop) : loop_(loop) {}

  // A lease with a token of 256 random bits, bound to `uid`. Once `ttl` has passed nobody attaches to it any more.
  absl::StatusOr<Lease*> open(std::string name, uid_t uid, DeviceSet devices, Clock::duration ttl,
                              const MemoryLimit& memory = {});
  // One that an earlier flagosd opened. Its page is new until an executor brings the one that it had.
  absl::StatusOr<Lease*> restore(const v1::StoredLease& stored);
  absl::StatusOr<Lease*> restore_own(const std::string& id, uid_t uid, const MemoryLimit& memory);
  static v1::StoredLease Store(const Lease& lease);
  // Numbers below this one are not given out any more.
  void skip_to(uint64_t next) { next_ = std::max(next_, next); }
  uint64_t next() const { return next_; }

  // A lease without a token, for one session.
  absl::StatusOr<Lease*> open_own(uid_t uid, const MemoryLimit& memory = {});
  // The lease of this token, for a process of `uid`. Denied where the token is unknown or another user's, without
  // saying which.
  absl::StatusOr<Lease*> find(const Token& token, uid_t uid);
  // The same for a process in a container, whose user means nothing here.
  absl::StatusOr<Lease*> find(const Token& token, const Cgroup& container);
  // The lease of this token, whoever asks; nullptr: there is none.
  Lease* peek(const Token& token) { return find_token(token); }
  Lease* find(const std::string& id);
  // Those with a token.
  std::vector<const Lease*> opened() const;
  const std::map<std::string, Lease>& all() const { return leases_; }
  // How many leases with a token the user has.
  size_t opened_by(uid_t uid) const;

  void add_session(Lease& lease, uint64_t session) { lease.sessions.insert(session); }
  // Forgets the session, and the lease where that was its last and it is not open any more.
  void remove_session(const std::string& lease, uint64_t session);
  void close(Lease& lease);

  // Called with a lease that was opened, before it is forgotten.
  void on_end(std::function<void(const Lease&)> ended) { ended_ = std::move(ended); }

 private:
  absl::StatusOr<Lease*> add(const std::string& id, uid_t uid, const MemoryLimit& memory);
  void expire_after(Lease& lease, Clock::duration ttl);
  void end_if_unused(Lease& lease);
  Lease* find_token(const Token& token);

  EventLoop& loop_;
  std::map<std::string, Lease> leases_;
  uint64_t next_ = 1;
  std::function<void(const Lease&)> ended_;
};

}  // namespace flagos::daemon
