// SPDX-License-Identifier: Apache-2.0
// The one thread that owns all state of flagosd: descriptors (epoll), timers (one timerfd), and tasks of other threads
// (eventfd). Nothing that runs on it may block.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"

namespace flagos::daemon {

using Clock = std::chrono::steady_clock;

class EventLoop;

// A descriptor that the loop watches, or a timer that it runs; ends with this object. Move only. Loop thread only, and
// never outlives the loop.
class Watch {
 public:
  Watch() = default;
  Watch(Watch&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)), id_(other.id_) {}
  Watch& operator=(Watch&& other) noexcept;
  ~Watch() { cancel(); }

  void cancel();
  explicit operator bool() const { return loop_ != nullptr; }

 private:
  friend class EventLoop;
  Watch(EventLoop* loop, uint64_t id) : loop_(loop), id_(id) {}
  EventLoop* loop_ = nullptr;
  uint64_t id_ = 0;
};

class EventLoop {
 public:
  using Task = std::function<void()>;
  // `events`: what epoll found, EPOLLIN and so on.
  using FdCallback = std::function<void(uint32_t events)>;

  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Level triggered. The descriptor must stay open until the Watch ends. A callback may end any Watch, its own too.
  [[nodiscard]] Watch watch(int fd, uint32_t events, FdCallback callback);
  // Runs once, not before `delay`.
  [[nodiscard]] Watch after(Clock::duration delay, Task task);

  // Runs `task` on the loop, after what is running. From any thread, also before run(). A task posted after run()
  // has returned runs in the next run() or never.
  void post(Task task);

  // Runs until stop(). The calling thread becomes the loop's.
  void run();
  void stop() { stopped_ = true; }

 private:
  friend class Watch;
  EventLoop(UniqueFd epoll, UniqueFd timer, UniqueFd wakeup);
  void cancel(uint64_t id);
  void run_tasks();
  void run_timers();
  void arm_timer();

  const UniqueFd epoll_, timer_, wakeup_;
  bool stopped_ = false;
  uint64_t next_id_ = 1;

  struct FdEntry {
    int fd;
    std::shared_ptr<FdCallback> callback;
  };
  struct TimerEntry {
    Clock::time_point due;
    Task task;
  };
  std::unordered_map<uint64_t, FdEntry> fds_;
  std::unordered_map<uint64_t, TimerEntry> timers_;
  std::multimap<Clock::time_point, uint64_t> due_;
  Clock::time_point armed_ = Clock::time_point::max();

  std::mutex mutex_;
  std::deque<Task> tasks_;  // GUARDED_BY(mutex_)
};

}  // namespace flagos::daemon
