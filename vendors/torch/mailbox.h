// SPDX-License-Identifier: Apache-2.0
// What threads of queued streams leave for the dispatch thread to do.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace flagos::torch_host {

class Mailbox {
 public:
  // From any thread. What is posted before a reply is seen by every record that the client sends after that reply.
  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    pending_.store(true, std::memory_order_release);
  }
  // Dispatch thread only; one load while there is nothing.
  void open() {
    if (pending_.load(std::memory_order_acquire)) [[unlikely]]
      run();
  }

 private:
  void run() {
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
      pending_.store(false, std::memory_order_relaxed);
    }
    for (auto& task : tasks) task();
  }

  std::atomic<bool> pending_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;  // guarded by mutex_
};

}  // namespace flagos::torch_host
