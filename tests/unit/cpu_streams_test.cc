// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "proto/wire/records.h"

namespace flagos::cpu {
namespace {

constexpr uint16_t kA = 64, kB = 65;
const auto kIgnore = [](const Error&) {};

class CpuStreams : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(streams_.create(kA, 0).ok());
    ASSERT_TRUE(streams_.create(kB, 1).ok());
  }
  // Holds a stream until the returned promise is kept.
  std::shared_ptr<std::promise<void>> hold(uint16_t stream) {
    auto promise = std::make_shared<std::promise<void>>();
    streams_.enqueue(
        stream, [promise, future = std::make_shared<std::future<void>>(promise->get_future())] { future->wait(); });
    return promise;
  }

  Streams streams_{2};
};

TEST_F(CpuStreams, RunTheirWorkInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) streams_.enqueue(kA, [&order, i] { order.push_back(i); });
  streams_.drain();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(CpuStreams, BelongToADeviceAndAreCreatedOnce) {
  EXPECT_EQ(streams_.device_of(1), 1);
  EXPECT_EQ(streams_.device_of(2), -1);
  EXPECT_EQ(streams_.device_of(kB), 1);
  EXPECT_EQ(streams_.device_of(60000), -1);
  EXPECT_FALSE(streams_.create(kA, 0).ok());
  EXPECT_FALSE(streams_.create(3, 0).ok());
  EXPECT_FALSE(streams_.create(66, 5).ok());
  EXPECT_FALSE(streams_.record(1, 99, false, kIgnore).ok());
}

TEST_F(CpuStreams, ADefaultStreamIsQueuedOnlyWhileItWaits) {
  EXPECT_FALSE(streams_.queued(0));
  EXPECT_TRUE(streams_.queued(kA));
  auto held = hold(kA);
  ASSERT_TRUE(streams_.record(1, kA, false, kIgnore).ok());
  ASSERT_TRUE(streams_.wait(1, 0).ok());
  EXPECT_TRUE(streams_.queued(0));
  std::atomic<bool> ran{false};
  streams_.enqueue(0, [&] { ran = true; });
  EXPECT_FALSE(ran);
  held->set_value();
  streams_.drain();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(streams_.queued(0));
}

TEST_F(CpuStreams, AnEventOfAnIdleStreamHasHappened) {
  bool done = false;
  ASSERT_TRUE(streams_.record(1, 0, false, [&](const Error& error) { done = error.ok(); }).ok());
  EXPECT_TRUE(done);
  ASSERT_TRUE(streams_.wait(1, 1).ok());
  ASSERT_TRUE(streams_.wait(77, 1).ok());  // never recorded
  EXPECT_FALSE(streams_.queued(1));
}

TEST_F(CpuStreams, AStreamWaitsForAnother) {
  std::atomic<int> value{0};
  auto held = hold(kA);
  streams_.enqueue(kA, [&] { value = 1; });
  ASSERT_TRUE(streams_.record(1, kA, false, kIgnore).ok());
  ASSERT_TRUE(streams_.wait(1, kB).ok());
  int seen = -1;
  streams_.enqueue(kB, [&] { seen = value; });
  streams_.destroy(1);
  held->set_value();
  streams_.drain();
  EXPECT_EQ(seen, 1);
}

TEST_F(CpuStreams, AFenceOfADeviceCoversItsStreamsAlone) {
  auto held = hold(kB);
  std::atomic<int> first{0}, second{0};
  streams_.fence(kAllStreams, 0, [&](const Error&) { ++first; });
  streams_.fence(kAllStreams, 1, [&](const Error&) { ++second; });
  streams_.fence(kB, 1, [&](const Error&) { ++second; });
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  held->set_value();
  streams_.drain();
  EXPECT_EQ(second, 2);
}

TEST_F(CpuStreams, ElapsedTimeComesWhenBothHaveHappened) {
  std::atomic<double> milliseconds{-1};
  Error error;
  const auto take = [&](Result<double> result) {
    if (result.ok()) {
      milliseconds = result.value();
    } else {
      error = result.error();
    }
  };
  streams_.elapsed(1, 2, take);
  EXPECT_EQ(error.code, ErrorCode::kValue);
  std::promise<void> first;
  ASSERT_TRUE(streams_.record(1, kA, true, [&](const Error&) { first.set_value(); }).ok());
  auto held = hold(kB);
  ASSERT_TRUE(streams_.record(2, kB, true, kIgnore).ok());
  first.get_future().wait();
  streams_.elapsed(1, 2, take);
  EXPECT_EQ(milliseconds, -1);
  held->set_value();
  streams_.drain();
  EXPECT_GE(milliseconds, 0);
  ASSERT_TRUE(streams_.record(3, 0, false, kIgnore).ok());
  streams_.elapsed(1, 3, take);
  EXPECT_NE(error.message.find("enable_timing"), std::string::npos);
}

}  // namespace
}  // namespace flagos::cpu
