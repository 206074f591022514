// SPDX-License-Identifier: Apache-2.0
// What a session offers to its vendor, and the state that replies are made from.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/shm/lease_memory.h"
#include "proto/shm/replies.h"
#include "server/executor/breadcrumb.h"
#include "server/executor/failures.h"
#include "server/executor/regions.h"
#include "server/executor/reply_slots.h"
#include "vendors/interface/vendor.h"

namespace flagos::executor {

// Why a session ended, for the client (in ExecutorPage), flagosd (kEnded) and the process's exit code.
struct EndCause {
  ErrorCode code = ErrorCode::kOk;  // kOk: in order
  std::string message;
};

// Thread safe but for breadcrumb(), which says so itself. Outlives the Backend opened with it.
class SessionHost final : public vendor::Host {
 public:
  // `regions` is borrowed, and so are `memory`, the session's account of its lease's memory (null: there is none), and
  // `descriptors`, the socket on which descriptors come and go (-1: none do). `total_bytes` has an entry for each
  // device of the session.
  SessionHost(const SessionRegions& regions, LeaseAccount* memory, std::span<const uint64_t> total_bytes,
              int descriptors = -1);

  void complete(uint16_t stream, uint64_t sequence) override;
  void fail(uint64_t sequence, const Error& error) override;
  Error device_failed(const Error& error) override;
  void warn(std::vector<Warning> warnings) override { failures_.warn(std::move(warnings)); }
  void count_misprediction() override { page_->mispredictions.fetch_add(1, std::memory_order_relaxed); }
  std::span<std::byte> arena() const override { return regions_.arena(); }
  void keep_arena_in_place() override { page_->arena_in_place.store(1, std::memory_order_relaxed); }
  DeviceFigures& figures(uint32_t device) override { return page_->devices[device % kMaxDevices]; }
  LeaseAccount* memory() override { return memory_; }

  // What ends the session; called from any thread. Set once, before the session's first record.
  void on_device_failure(std::function<void(const EndCause&)> end) { end_ = std::move(end); }

  // Shows the client, as its devices' total, what the session may hold at most as its lease is now.
  void show_limits();
  // Fills in what `stats`, of a device, cannot know of the lease.
  void add_lease(uint32_t device, MemoryStats& stats) const;

  // Publishes that the session runs, and wakes who waits for that.
  void start();
  // Publishes the cause and that the session has ended, and wakes all sleepers. The first cause stands.
  void finish(const EndCause& cause);

  const SessionRegions& regions() const { return regions_; }
  ExecutorPage* page() const { return page_; }
  uint32_t device_count() const { return device_count_; }
  int descriptors() const { return descriptors_; }
  Breadcrumb& breadcrumb() { return breadcrumb_; }
  Failures& failures() { return failures_; }
  ReplySlots& slots() { return slots_; }

 private:
  const SessionRegions& regions_;
  ExecutorPage* const page_;
  LeaseAccount* const memory_;
  const std::vector<uint64_t> total_bytes_;  // by device
  const uint32_t device_count_;
  const int descriptors_;
  ReplyWriter writer_;
  Breadcrumb breadcrumb_;
  Failures failures_;
  ReplySlots slots_;
  std::function<void(const EndCause&)> end_;
  std::atomic<bool> finished_{false};
};

}  // namespace flagos::executor
