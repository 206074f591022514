// SPDX-License-Identifier: Apache-2.0
#include "server/executor/host.h"

#include <algorithm>
#include <climits>

#include "proto/shm/futex.h"

namespace flagos::executor {

SessionHost::SessionHost(const SessionRegions& regions, LeaseAccount* memory, std::span<const uint64_t> total_bytes,
                         int descriptors)
    : regions_(regions),
      page_(regions.page()),
      memory_(memory),
      total_bytes_(total_bytes.begin(), total_bytes.end()),
      device_count_(static_cast<uint32_t>(total_bytes.size())),
      descriptors_(descriptors),
      writer_(regions.client(), regions.executor()),
      breadcrumb_(page_),
      failures_(page_),
      slots_(writer_, failures_) {
  for (uint32_t device = 0; device < device_count_; ++device) {
    figures(device).total_bytes.store(static_cast<int64_t>(total_bytes[device]), std::memory_order_relaxed);
  }
}

void SessionHost::complete(uint16_t stream, uint64_t sequence) {
  if (stream < kMaxStreams) writer_.complete(stream, sequence);
}

void SessionHost::fail(uint64_t sequence, const Error& error) {
  failures_.fail(sequence, error, breadcrumb_.name_of(sequence));
}

// Which call it was is not known: a device runs behind, and tells late.
Error SessionHost::device_failed(const Error& error) {
  constexpr size_t kNamed = 5;
  std::string message = error.message;
  const char* separator = "; the latest calls, newest first: ";
  for (const std::string& name : breadcrumb_.latest_calls(kNamed)) {
    message += separator + name;
    separator = ", ";
  }
  end_({ErrorCode::kDevice, message});
  return {error.code, message};
}

void SessionHost::show_limits() {
  for (uint32_t device = 0; memory_ != nullptr && device < device_count_; ++device) {
    const LeaseMemory lease = memory_->view(device);
    if (lease.quota == 0) continue;
    const uint64_t room = lease.quota - std::min(lease.quota, lease.used);
    const uint64_t most = std::min(total_bytes_[device], memory_->charged(device) + room);
    figures(device).total_bytes.store(static_cast<int64_t>(most), std::memory_order_relaxed);
  }
}

void SessionHost::add_lease(uint32_t device, MemoryStats& stats) const {
  if (memory_ == nullptr || device >= device_count_) return;
  const LeaseMemory lease = memory_->view(device);
  if (lease.quota == 0) return;
  const uint64_t room = lease.quota - std::min(lease.quota, lease.used);
  stats.quota_bytes = static_cast<int64_t>(std::min<uint64_t>(lease.quota, INT64_MAX));
  stats.free_bytes =
      static_cast<int64_t>(std::min(static_cast<uint64_t>(std::max<int64_t>(stats.free_bytes, 0)), room));
}

void SessionHost::start() {
  show_limits();
  page_->last_active_ns.store(MonotonicNanoseconds(), std::memory_order_relaxed);
  page_->state.store(static_cast<uint64_t>(ExecutorState::kRunning), std::memory_order_release);
  FutexWake(page_->state, INT_MAX);
}

void SessionHost::finish(const EndCause& cause) {
  if (finished_.exchange(true)) return;
  CopyText(page_->end_cause, cause.message);
  page_->exit_code.store(cause.code == ErrorCode::kOk ? 0 : 1, std::memory_order_relaxed);
  page_->state.store(static_cast<uint64_t>(ExecutorState::kEnded), std::memory_order_release);
  FutexWake(page_->state, INT_MAX);
  // Sleepers look at the state when they wake; without this they would find out at their next poll.
  if (regions_.client()->sleepers.load(std::memory_order_seq_cst) != 0) WakeAll(regions_.executor());
}

}  // namespace flagos::executor
