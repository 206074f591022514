// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/lane.h"

#include <pthread.h>

#include <utility>

namespace flagos::cpu {

Lane::Lane(const std::string& name) : thread_([this] { loop(); }) {
  constexpr size_t kMaxName = 15;
  pthread_setname_np(thread_.native_handle(), name.substr(0, kMaxName).c_str());
}

Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Lane::enqueue(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    pending_.fetch_add(1, std::memory_order_relaxed);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void Lane::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return idle(); });
}

void Lane::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // what it holds is let go of before the lane counts as idle
    lock.lock();
    if (pending_.fetch_sub(1, std::memory_order_release) == 1) changed_.notify_all();
  }
}

}  // namespace flagos::cpu
