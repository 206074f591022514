// SPDX-License-Identifier: Apache-2.0
// The dispatch loop: reads the ring, checks each record, has it carried out, until the session ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "proto/shm/ring.h"
#include "server/executor/command.h"
#include "server/executor/host.h"
#include "server/executor/runner.h"
#include "server/executor/share.h"
#include "vendors/interface/vendor.h"

namespace flagos::executor {

class Dispatcher {
 public:
  // All are borrowed; the backend was opened with `host`. `share` may be null: the session takes no turns.
  Dispatcher(SessionHost& host, vendor::Backend& backend, Share* share = nullptr);

  // Serves the session on the calling thread, the dispatch thread, until the client closes it, breaks the protocol, or
  // end() was called. All SYNC records that were in the ring by then are answered, and the cause is published. Call
  // once.
  EndCause run();

  // From any thread: run() returns when the running record is done. The first cause stands.
  void end(const EndCause& cause);

  // From any thread, about once a second: brings the page's figures of how busy the session is up to date. They are
  // current whenever the ring is empty; this is for a ring that stays filled, and for a call that takes long.
  void account();

 private:
  // False: the session ends, for `cause_`.
  bool carry_out(const Record& record);
  void idle();
  void charge(uint64_t since, uint64_t now);
  void end_malformed(const Record& record, const Command& command, const char* wrong);
  void drain();
  void answer_ring(const Error& lost);

  SessionHost& host_;
  Share* const share_;
  RingConsumer consumer_;
  CommandChecker checker_;
  CommandRunner runner_;

  // Until when the time is accounted, while there is something to do; 0: idle. Only the dispatch thread takes it from
  // and to 0.
  std::atomic<uint64_t> busy_since_{0};

  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  EndCause cause_;  // GUARDED_BY(mutex_) until ending_ is set, then constant
};

}  // namespace flagos::executor
