// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/event.h"

#include <utility>

namespace flagos::cpu {

void Event::happen() {
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(mutex_);
    happened_ = true;
    time_ = Clock::now();
    actions.swap(actions_);
  }
  changed_.notify_all();
  for (const auto& action : actions) action();
}

bool Event::happened() const {
  const std::lock_guard lock(mutex_);
  return happened_;
}

void Event::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return happened_; });
}

void Event::then(std::function<void()> action) {
  {
    const std::lock_guard lock(mutex_);
    if (!happened_) {
      actions_.push_back(std::move(action));
      return;
    }
  }
  action();
}

Event::Clock::time_point Event::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

}  // namespace flagos::cpu
