// SPDX-License-Identifier: Apache-2.0
// An event loop on a thread of its own, for tests that talk to it from outside.
#pragma once

#include <future>
#include <memory>
#include <thread>

#include "server/daemon/event_loop.h"

namespace flagos::testing {

class LoopThread {
 public:
  LoopThread() : loop_(*daemon::EventLoop::Create()), thread_([this] { loop_->run(); }) {}
  ~LoopThread() { stop(); }

  daemon::EventLoop& loop() { return *loop_; }
  void stop() {
    if (!thread_.joinable()) return;
    loop_->post([this] { loop_->stop(); });
    thread_.join();
  }
  // Runs `work` on the loop and returns what it returned.
  template <class Work>
  auto call(Work work) {
    using Value = decltype(work());
    auto task = std::make_shared<std::packaged_task<Value()>>(std::move(work));
    auto future = task->get_future();
    loop_->post([task] { (*task)(); });
    return future.get();
  }

 private:
  const std::unique_ptr<daemon::EventLoop> loop_;
  std::thread thread_;
};

}  // namespace flagos::testing
