// SPDX-License-Identifier: Apache-2.0
// A stream's thread: runs what it is given, in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace flagos::cpu {

// Thread safe. Work does not throw.
class Lane {
 public:
  // `name` is the thread's, as ps shows it.
  explicit Lane(const std::string& name);
  // Runs what is queued, then ends.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void enqueue(std::function<void()> work);
  // Nothing is queued or running, and what has run is visible to the caller.
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  void wait_idle();

 private:
  void loop();

  std::atomic<size_t> pending_{0};
  std::mutex mutex_;
  std::condition_variable changed_;          // queued, ending or idle again
  std::deque<std::function<void()>> queue_;  // GUARDED_BY(mutex_)
  bool ending_ = false;                      // GUARDED_BY(mutex_)
  std::thread thread_;
};

}  // namespace flagos::cpu
