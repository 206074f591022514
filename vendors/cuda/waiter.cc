// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/waiter.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "proto/shm/futex.h"
#include "vendors/cuda/errors.h"

namespace flagos::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// How it waits, by how long it has waited. Asking takes locks that launching needs, so it is done rarely where the wait
// is long anyway; and a wait that in-process CUDA would spend spinning is worth a core, for a while: a thread that
// sleeps comes back late.
constexpr auto kShort = std::chrono::microseconds(100);
constexpr auto kSpin = std::chrono::milliseconds(20);
constexpr auto kPause = std::chrono::microseconds(20);  // of sleep, from then on
constexpr int kRelaxShort = 40;                         // about a microsecond
constexpr int kRelaxLong = 200;

void Pause(Clock::duration waited) {
  if (waited > kSpin) return std::this_thread::sleep_for(kPause);
  const int turns = waited > kShort ? kRelaxLong : kRelaxShort;
  for (int i = 0; i < turns; ++i) CpuRelax();
}

}  // namespace

Waiter::Waiter(Failed failed) : failed_(std::move(failed)), thread_([this] { loop(); }) {
  ::pthread_setname_np(thread_.native_handle(), "flagos-cuda");
}

Waiter::~Waiter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    news_.store(true, std::memory_order_release);
  }
  changed_.notify_one();
  thread_.join();
}

void Waiter::wait(std::vector<cudaEvent_t> events, Done done) {
  {
    const std::lock_guard lock(mutex_);
    added_.push_back({std::move(events), std::move(done)});
    news_.store(true, std::memory_order_release);
  }
  changed_.notify_one();
}

bool Waiter::settle(Pending& pending) {
  while (!pending.events.empty()) {
    const cudaError_t status = cudaEventQuery(pending.events.back());
    if (status == cudaErrorNotReady) return false;
    if (status != cudaSuccess) {
      pending.done(failed_(ToError(status, "the device ran the session's calls")));
      return true;
    }
    pending.events.pop_back();
  }
  pending.done(Error::Ok());
  return true;
}

void Waiter::loop() {
  ::prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds; else a pause is three times as long
  std::vector<Pending> pending;
  Clock::time_point quiet_since = Clock::now();
  for (;;) {
    if (pending.empty() || news_.load(std::memory_order_acquire)) {
      std::unique_lock lock(mutex_);
      if (pending.empty()) changed_.wait(lock, [this] { return ending_ || !added_.empty(); });
      std::ranges::move(added_, std::back_inserter(pending));
      added_.clear();
      news_.store(false, std::memory_order_relaxed);
      quiet_since = Clock::now();
      if (ending_) break;
    }
    if (std::erase_if(pending, [this](Pending& one) { return settle(one); }) != 0) {
      quiet_since = Clock::now();
    } else {
      Pause(Clock::now() - quiet_since);
    }
  }
  for (Pending& left : pending) left.done(MakeError(ErrorCode::kDeviceLost, "the session ends"));
}

}  // namespace flagos::cuda
