// SPDX-License-Identifier: Apache-2.0
// A session's shared memory, and the pages of it that flagosd reads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/shm/layout.h"
#include "proto/shm/memfd.h"
#include "server/daemon/config/config.h"
#include "server/daemon/executors/exit_status.h"

namespace flagos::daemon {

// The three memfds on their way to client and executor. Closed as soon as both have them: the mappings below are all
// that flagosd keeps.
struct RegionFds {
  UniqueFd ring, executor, arena;
  UniqueFd ring_read_only, executor_read_only;
};

// What the pages of a session say. Both peers may lie: numbers are clamped to what can be, texts to what can be shown.
struct SessionFigures {
  uint64_t memory_used = 0, memory_peak = 0;  // bytes
  uint64_t calls = 0, synchronous_calls = 0, mispredictions = 0;
  double device_time = 0;  // seconds
  double idle = 0;         // seconds since the last call
  uint64_t queue_bytes = 0;
  std::string blocked;     // "ring full", or empty
  double blocked_for = 0;  // seconds
  uint64_t blocked_count = 0;
  std::string last_operator;
  uint64_t last_sequence = 0;
};

class SessionRegions {
 public:
  static absl::StatusOr<SessionRegions> Create(const SessionConfig& config, RegionFds& fds);

  // Those of a session that an earlier flagosd made, as its executor passes them. Sealed and large enough, or refused.
  static absl::StatusOr<SessionRegions> Map(const UniqueFd& ring, const UniqueFd& executor, uint64_t ring_bytes);

  // `started`: CLOCK_MONOTONIC nanoseconds, from when a session without a call is idle.
  SessionFigures figures(uint64_t started, uint32_t device_count) const;
  // Memory that the executor says one device (as the session counts them) takes.
  uint64_t memory_used(uint32_t device) const;
  ExecutorState executor_state() const;

  // REQUIRES the executor to be gone. Writes how it ended, unless it ended in order, and wakes everybody who waits for
  // it.
  void tell_lost(const ExitStatus& status);

 private:
  const ClientPage& client() const { return *reinterpret_cast<const ClientPage*>(ring_.data()); }
  ExecutorPage& page() const { return *reinterpret_cast<ExecutorPage*>(executor_.data()); }

  Mapping ring_;      // read-only
  Mapping executor_;  // read-write
  uint64_t ring_bytes_ = 0;
};

}  // namespace flagos::daemon
