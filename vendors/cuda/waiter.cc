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

// A wait this short is worth a core; a longer one is looked after now and then, which adds at most the pause to it.
constexpr auto kSpin = std::chrono::milliseconds(2);
constexpr auto kPause = std::chrono::microseconds(20);
constexpr int kPausesOfSpin = 40;  // about a microsecond: asking takes locks that launching needs

}  // namespace

Waiter::Waiter() : thread_([this] { loop(); }) { ::pthread_setname_np(thread_.native_handle(), "flagos-cuda"); }

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
      pending.done(ToError(status, "waiting for a stream"));
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
    if (std::erase_if(pending, settle) != 0) {
      quiet_since = Clock::now();
    } else if (Clock::now() - quiet_since > kSpin) {
      std::this_thread::sleep_for(kPause);
    } else {
      for (int i = 0; i < kPausesOfSpin; ++i) CpuRelax();
    }
  }
  for (Pending& left : pending) left.done(MakeError(ErrorCode::kDeviceLost, "the session ends"));
}

}  // namespace flagos::cuda
