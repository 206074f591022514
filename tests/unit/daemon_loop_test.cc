// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "proto/socket/unix_socket.h"
#include "server/daemon/event_loop.h"

namespace flagos::daemon {
namespace {

using namespace std::chrono_literals;

class EventLoopTest : public ::testing::Test {
 protected:
  EventLoopTest() : loop_(*EventLoop::Create()) {
    auto pair = UnixPair();
    ours_ = std::move(pair.value().first);
    theirs_ = std::move(pair.value().second);
  }
  std::unique_ptr<EventLoop> loop_;
  UniqueFd ours_, theirs_;
};

TEST_F(EventLoopTest, RunsTimersInTheOrderOfTheirTimes) {
  std::vector<int> order;
  const Watch late = loop_->after(30ms, [&] {
    order.push_back(3);
    loop_->stop();
  });
  const Watch early = loop_->after(10ms, [&] { order.push_back(1); });
  const Watch middle = loop_->after(20ms, [&] { order.push_back(2); });
  Watch cancelled = loop_->after(15ms, [&] { order.push_back(9); });
  cancelled.cancel();
  const auto start = Clock::now();
  loop_->run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(Clock::now() - start, 30ms);
}

TEST_F(EventLoopTest, ATimerMayReplaceItself) {
  int count = 0;
  Watch timer;
  std::function<void()> tick = [&] {
    if (++count == 3) return loop_->stop();
    timer = loop_->after(1ms, tick);
  };
  timer = loop_->after(1ms, tick);
  loop_->run();
  EXPECT_EQ(count, 3);
}

TEST_F(EventLoopTest, AWatchMayEndItselfInItsCallback) {
  int count = 0;
  Watch watch;
  watch = loop_->watch(ours_.get(), EPOLLIN, [&](uint32_t) {
    ++count;
    watch.cancel();  // though the byte was not read
  });
  ASSERT_EQ(::send(theirs_.get(), "x", 1, 0), 1);
  const Watch end = loop_->after(20ms, [&] { loop_->stop(); });
  loop_->run();
  EXPECT_EQ(count, 1);
}

TEST_F(EventLoopTest, AnEndedWatchIsNotCalledForAnEventOfTheSameRound) {
  auto pair = UnixPair();
  Watch first, second;
  int calls = 0;
  first = loop_->watch(ours_.get(), EPOLLIN, [&](uint32_t) {
    ++calls;
    second.cancel();
    first.cancel();
  });
  second = loop_->watch(pair.value().first.get(), EPOLLIN, [&](uint32_t) {
    ++calls;
    first.cancel();
    second.cancel();
  });
  ASSERT_EQ(::send(theirs_.get(), "x", 1, 0), 1);
  ASSERT_EQ(::send(pair.value().second.get(), "x", 1, 0), 1);
  const Watch end = loop_->after(20ms, [&] { loop_->stop(); });
  loop_->run();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, RunsTasksOfOtherThreadsInTheirOrder) {
  std::vector<int> order;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop_->post([&order, i] { order.push_back(i); });
    loop_->post([this] { loop_->stop(); });
  });
  loop_->run();
  other.join();
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
}  // namespace flagos::daemon
