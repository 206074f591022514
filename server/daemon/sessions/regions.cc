// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/sessions/regions.h"

#include <algorithm>
#include <climits>

#include "proto/shm/futex.h"
#include "proto/shm/replies.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

constexpr size_t kShownOperator = 200;  // bytes of an operator's name

// A figure that a peer wrote: never negative, never more than fits into a signed number.
uint64_t Clamp(int64_t value) { return value < 0 ? 0 : static_cast<uint64_t>(value); }
uint64_t Clamp(uint64_t value) { return std::min<uint64_t>(value, INT64_MAX); }

double SecondsSince(uint64_t then, uint64_t now) {
  return then == 0 || then >= now ? 0.0 : static_cast<double>(now - then) / 1e9;
}

const char* BlockText(uint32_t reason) {
  switch (static_cast<BlockReason>(reason)) {
    case BlockReason::kRingFull: return "ring full";
    case BlockReason::kReplySlots: return "reply slots in use";
    case BlockReason::kArenaFull: return "arena full";
    case BlockReason::kNone: break;
  }
  return "";
}

// The name that a breadcrumb points to. The executor may be writing, or have been broken while it did.
std::string OperatorName(const ExecutorPage& page, uint32_t last_operator) {
  std::string name;
  if (last_operator == 0) return name;
  for (size_t at = last_operator - 1; at < kOperatorNameBytes && name.size() < kShownOperator; ++at) {
    const char c = std::atomic_ref<char>(const_cast<char&>(page.operator_names[at])).load(std::memory_order_relaxed);
    if (c == '\0') break;
    name.push_back(c > ' ' && c < 0x7f ? c : '?');
  }
  return name;
}

absl::Status MapRegion(const UniqueFd& fd, Access access, uint64_t bytes, Mapping& to) {
  auto mapped = Mapping::Map(fd.get(), access, bytes);
  if (!mapped.ok()) return ToStatus(mapped.error());
  to = std::move(mapped).value();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SessionRegions> SessionRegions::Map(const UniqueFd& ring, const UniqueFd& executor,
                                                   uint64_t ring_bytes) {
  if (ring_bytes < kMinRingBytes || ring_bytes > kMaxRingBytes) {
    return absl::InvalidArgumentError(Cat("a ring of ", ring_bytes, " bytes"));
  }
  SessionRegions regions;
  regions.ring_bytes_ = ring_bytes;
  FLAGOS_RETURN_IF_ERROR(MapRegion(ring, Access::kReadOnly, RingRegionBytes(ring_bytes), regions.ring_));
  FLAGOS_RETURN_IF_ERROR(MapRegion(executor, Access::kReadWrite, kExecutorRegionBytes, regions.executor_));
  return regions;
}

absl::StatusOr<SessionRegions> SessionRegions::Create(const SessionConfig& config, RegionFds& fds) {
  SessionRegions regions;
  regions.ring_bytes_ = config.ring;
  const auto create = [](const char* name, uint64_t bytes, UniqueFd& to) {
    auto made = CreateRegion(name, bytes);
    if (!made.ok()) return ToStatus(made.error());
    to = std::move(made).value();
    return absl::OkStatus();
  };
  const auto reopen = [](const UniqueFd& from, UniqueFd& to) {
    auto opened = ReopenReadOnly(from.get());
    if (!opened.ok()) return ToStatus(opened.error());
    to = std::move(opened).value();
    return absl::OkStatus();
  };
  const uint64_t ring_region = RingRegionBytes(config.ring);
  FLAGOS_RETURN_IF_ERROR(create("flagos-ring", ring_region, fds.ring));
  FLAGOS_RETURN_IF_ERROR(create("flagos-executor", kExecutorRegionBytes, fds.executor));
  FLAGOS_RETURN_IF_ERROR(create("flagos-arena", config.arena, fds.arena));
  FLAGOS_RETURN_IF_ERROR(reopen(fds.ring, fds.ring_read_only));
  FLAGOS_RETURN_IF_ERROR(reopen(fds.executor, fds.executor_read_only));
  FLAGOS_RETURN_IF_ERROR(MapRegion(fds.ring_read_only, Access::kReadOnly, ring_region, regions.ring_));
  FLAGOS_RETURN_IF_ERROR(MapRegion(fds.executor, Access::kReadWrite, kExecutorRegionBytes, regions.executor_));
  return regions;
}

SessionFigures SessionRegions::figures(uint64_t started, uint32_t device_count) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const uint64_t now = MonotonicNanoseconds();
  const ExecutorPage& executor = page();
  SessionFigures figures;
  for (uint32_t i = 0; i < std::min(device_count, kMaxDevices); ++i) {
    figures.memory_used = Clamp(figures.memory_used + memory_used(i));
    const DeviceFigures& device = executor.devices[i];
    figures.memory_peak = Clamp(figures.memory_peak + Clamp(device.peak_allocated_bytes.load(kRelaxed)));
  }
  figures.memory_peak = std::max(figures.memory_peak, figures.memory_used);
  figures.calls = Clamp(executor.calls.load(kRelaxed));
  figures.synchronous_calls = Clamp(executor.synchronous_calls.load(kRelaxed));
  figures.mispredictions = Clamp(executor.mispredictions.load(kRelaxed));
  figures.device_time = static_cast<double>(Clamp(executor.busy_ns.load(kRelaxed))) / 1e9;
  const uint64_t active = executor.last_active_ns.load(kRelaxed);
  figures.idle = SecondsSince(std::max(active, started), now);

  const uint64_t tail = executor.tail.load(kRelaxed);
  const uint64_t head = client().head.load(kRelaxed);
  figures.queue_bytes = head > tail ? std::min(head - tail, ring_bytes_) : 0;
  figures.blocked = BlockText(client().blocked_reason.load(kRelaxed));
  if (!figures.blocked.empty()) figures.blocked_for = SecondsSince(client().blocked_since_ns.load(kRelaxed), now);
  figures.blocked_count = Clamp(client().blocked_count.load(kRelaxed));

  figures.last_operator = OperatorName(executor, executor.last_operator.load(kRelaxed));
  figures.last_sequence = Clamp(executor.running_sequence.load(kRelaxed));
  return figures;
}

uint64_t SessionRegions::memory_used(uint32_t device) const {
  const DeviceFigures& figures = page().devices[device];
  return std::max(Clamp(figures.reserved_bytes.load(std::memory_order_relaxed)),
                  Clamp(figures.allocated_bytes.load(std::memory_order_relaxed)));
}

ExecutorState SessionRegions::executor_state() const {
  const uint64_t state = page().state.load(std::memory_order_acquire);
  return state <= static_cast<uint64_t>(ExecutorState::kLost) ? static_cast<ExecutorState>(state)
                                                              : ExecutorState::kLost;
}

void SessionRegions::tell_lost(const ExitStatus& status) {
  ExecutorPage& executor = page();
  if ((status.known && !status.clean()) || executor_state() != ExecutorState::kEnded) {
    executor.exit_signal.store(status.signal, std::memory_order_relaxed);
    executor.exit_code.store(status.code, std::memory_order_relaxed);
    executor.state.store(static_cast<uint64_t>(ExecutorState::kLost), std::memory_order_seq_cst);
  }
  // Whoever sleeps looks at the state when it wakes. Waking costs a system call for each word, a millisecond in all.
  FutexWake(executor.state, INT_MAX);
  WakeAll({executor_.data(), executor_.size()});
}

}  // namespace flagos::daemon
