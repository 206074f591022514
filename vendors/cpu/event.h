// SPDX-License-Identifier: Apache-2.0
// One recording of an event: happens once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace flagos::cpu {

// Thread safe.
class Event {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Event(bool timing) : timing_(timing) {}

  void happen();
  bool happened() const;
  void wait();
  // Calls `action` once it has happened: at once, or in the thread where it happens.
  void then(std::function<void()> action);
  bool timing() const { return timing_; }
  // REQUIRES happened().
  Clock::time_point time() const;

 private:
  const bool timing_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;                       // GUARDED_BY(mutex_)
  Clock::time_point time_;                      // GUARDED_BY(mutex_)
  std::vector<std::function<void()>> actions_;  // GUARDED_BY(mutex_)
};

}  // namespace flagos::cpu
