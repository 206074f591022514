// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/event_loop.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "server/common/status.h"

namespace flagos::daemon {
namespace {

// Numbers of the loop's own two descriptors; those of watches are larger.
constexpr uint64_t kWakeupId = 0;
constexpr uint64_t kTimerId = UINT64_MAX;

bool AddToEpoll(int epoll, int fd, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Drain(int fd) {
  uint64_t count = 0;
  while (::read(fd, &count, sizeof count) > 0) {
  }
}

}  // namespace

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    cancel();
    loop_ = std::exchange(other.loop_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

void Watch::cancel() {
  if (EventLoop* const loop = std::exchange(loop_, nullptr)) loop->cancel(id_);
}

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  UniqueFd wakeup(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll || !timer || !wakeup || !AddToEpoll(epoll.get(), timer.get(), EPOLLIN, kTimerId) ||
      !AddToEpoll(epoll.get(), wakeup.get(), EPOLLIN, kWakeupId)) {
    return SystemError(errno, "cannot create the event loop", "raise the limit of open files");
  }
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(timer), std::move(wakeup)));
}

EventLoop::EventLoop(UniqueFd epoll, UniqueFd timer, UniqueFd wakeup)
    : epoll_(std::move(epoll)), timer_(std::move(timer)), wakeup_(std::move(wakeup)) {}

Watch EventLoop::watch(int fd, uint32_t events, FdCallback callback) {
  const uint64_t id = next_id_++;
  // Without room in epoll (a limit of the user) the descriptor reads as broken, which every callback handles.
  if (!AddToEpoll(epoll_.get(), fd, events, id)) {
    post([this, id] {
      const auto entry = fds_.find(id);
      if (entry != fds_.end()) (*std::shared_ptr(entry->second.callback))(EPOLLERR | EPOLLHUP);
    });
  }
  fds_.emplace(id, FdEntry{fd, std::make_shared<FdCallback>(std::move(callback))});
  return Watch(this, id);
}

Watch EventLoop::after(Clock::duration delay, Task task) {
  const uint64_t id = next_id_++;
  const Clock::time_point due = Clock::now() + delay;
  timers_.emplace(id, TimerEntry{due, std::move(task)});
  due_.emplace(due, id);
  arm_timer();
  return Watch(this, id);
}

void EventLoop::cancel(uint64_t id) {
  if (const auto entry = fds_.find(id); entry != fds_.end()) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry->second.fd, nullptr);
    fds_.erase(entry);
  } else if (const auto timer = timers_.find(id); timer != timers_.end()) {
    const auto [begin, end] = due_.equal_range(timer->second.due);
    for (auto at = begin; at != end; ++at) {
      if (at->second == id) {
        due_.erase(at);
        break;
      }
    }
    timers_.erase(timer);  // a late tick of the timerfd finds nothing due
  }
}

void EventLoop::arm_timer() {
  const auto due = due_.empty() ? Clock::time_point::max() : due_.begin()->first;
  if (due == armed_ || due == Clock::time_point::max()) return;
  armed_ = due;
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(due.time_since_epoch()).count();
  itimerspec when{};
  when.it_value.tv_sec = nanoseconds / 1'000'000'000;
  when.it_value.tv_nsec = nanoseconds % 1'000'000'000;
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void EventLoop::run_timers() {
  Drain(timer_.get());
  armed_ = Clock::time_point::max();
  const auto now = Clock::now();
  while (!due_.empty() && due_.begin()->first <= now) {
    const uint64_t id = due_.begin()->second;
    due_.erase(due_.begin());
    const auto timer = timers_.find(id);
    const Task task = std::move(timer->second.task);
    timers_.erase(timer);
    task();
  }
  arm_timer();
}

void EventLoop::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  // Fails only where the counter is full, and then the loop is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wakeup_.get(), &one, sizeof one);
}

void EventLoop::run_tasks() {
  std::deque<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (; !tasks.empty(); tasks.pop_front()) tasks.front()();
}

void EventLoop::run() {
  std::array<epoll_event, 64> events;
  while (!stopped_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kTimerId) {
        run_timers();
      } else if (id == kWakeupId) {
        Drain(wakeup_.get());
        run_tasks();  // one batch: a flood of tasks does not keep descriptors waiting
      } else if (const auto entry = fds_.find(id); entry != fds_.end()) {
        // A copy, because the callback may end its own watch.
        const std::shared_ptr<FdCallback> callback = entry->second.callback;
        (*callback)(events[static_cast<size_t>(i)].events);
      }
    }
  }
  stopped_ = false;
}

}  // namespace flagos::daemon
