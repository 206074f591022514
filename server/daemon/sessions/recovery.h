// SPDX-License-Identifier: Apache-2.0
// Taking over what an earlier flagosd left: its leases, and the sessions whose executors ask to go on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "server/daemon/config/config.h"
#include "server/daemon/executors/process.h"
#include "server/daemon/executors/rejoin_listener.h"
#include "server/daemon/sessions/lease_memory.h"
#include "server/daemon/sessions/regions.h"
#include "server/daemon/sessions/share.h"
#include "server/daemon/state/store.h"

namespace flagos::daemon {

// A session that goes on here.
struct RecoveredSession {
  v1::StoredSession stored;
  SessionRegions regions;
  uint64_t ring_bytes = 0, arena_bytes = 0;
  UniqueFd client;  // pidfd
  UniqueFd lease_page, arbiter_page;
  uint32_t lease_entry = 0;                       // in the arbiter's
  std::shared_ptr<LeaseMemoryPage> lease_memory;  // of its lease, as the next; the taker's to find
  std::shared_ptr<LeaseShare> lease_share;
  std::unique_ptr<ExecutorProcess> executor;  // without an owner
};

// A session is known by its file; its executor by the process that the file names, which must be the one that connects.
// An executor without a file is not taken: it goes on for as long as its client lives. A file whose executor is gone is
// removed. An executor whose client is gone, and that neither comes nor ends, is killed.
//
// Loop thread only.
class Recovery {
 public:
  using Taken = std::function<void(RecoveredSession)>;

  Recovery(EventLoop& loop, Spawner& spawner, StateStore& store, Taken taken);

  // Reads the files; `socket` listens for executors from then on.
  void start(int socket);

  // Sessions whose executors have not come yet, by number.
  size_t awaited() const { return awaited_.size(); }
  bool awaits(const std::string& lease) const;
  // The highest number of an executor or a session that there is.
  uint64_t last_executor() const { return last_executor_; }
  uint64_t last_session() const { return last_session_; }

 private:
  struct Awaited {
    v1::StoredSession stored;
    std::unique_ptr<ExecutorHandle> executor;
    UniqueFd client;  // pidfd; invalid: it is gone, or not to be seen
    Watch client_watch, orphan;
  };

  void await(v1::StoredSession stored);
  void give_up(uint64_t number, const std::string& why);
  void end_orphan(uint64_t number);
  void rejoin(RejoinRequest request);
  absl::StatusOr<RecoveredSession> recover(RejoinRequest& request);

  EventLoop& loop_;
  Spawner& spawner_;
  StateStore& store_;
  const Taken taken_;
  std::map<uint64_t, Awaited> awaited_;
  std::unique_ptr<RejoinListener> listener_;
  uint64_t last_executor_ = 0, last_session_ = 0;
};

}  // namespace flagos::daemon
