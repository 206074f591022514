// SPDX-License-Identifier: Apache-2.0
// Waiting costs little: a short spin, then sleep.
#include <gtest/gtest.h>
#include <time.h>

#include <thread>

#include "proto/shm/futex.h"
#include "proto/shm/replies.h"
#include "proto/shm/ring.h"
#include "tests/unit/proto_session.h"

namespace flagos {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

uint64_t ThreadCpuNanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

class Waiting : public ::testing::Test {
 protected:
  testing::Regions regions;
  testing::View view = regions.map();
  RingConsumer consumer{view.client(), view.ring(), view.executor()};
};

TEST_F(Waiting, AConsumerWithoutWorkSleeps) {
  const uint64_t start = MonotonicNanoseconds();
  const uint64_t cpu = ThreadCpuNanoseconds();
  consumer.wait(300 * kMillisecond);
  EXPECT_GE(MonotonicNanoseconds() - start, 250 * kMillisecond);
  EXPECT_LT(ThreadCpuNanoseconds() - cpu, SpinNanoseconds() + 20 * kMillisecond);
  EXPECT_EQ(view.executor()->sleeping.load(), 0u);
}

TEST_F(Waiting, AClientWithoutAnswerSleeps) {
  ReplyReader reader(view.client(), view.replies(), testing::kAlive);
  ReplyWriter writer(view.client(), view.replies());
  std::thread executor([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    writer.complete(0, 1);
  });
  const uint64_t cpu = ThreadCpuNanoseconds();
  EXPECT_TRUE(reader.wait_complete(0, 1));
  EXPECT_LT(ThreadCpuNanoseconds() - cpu, SpinNanoseconds() + 30 * kMillisecond);
  executor.join();
}

TEST_F(Waiting, AProducerWithoutCreditsSleeps) {
  RingProducer producer(view.client(), view.ring(), view.executor(), testing::kAlive);
  ErrorCode error = ErrorCode::kOk;
  const size_t half = producer.max_payload();
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(producer.reserve(half, error), nullptr);
    producer.commit(testing::Header(RecordKind::kFree), half);
  }
  std::thread executor([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    Record record;
    EXPECT_EQ(consumer.try_read(record), RingConsumer::Status::kRecord);
  });
  const uint64_t cpu = ThreadCpuNanoseconds();
  EXPECT_NE(producer.reserve(half, error), nullptr);
  EXPECT_LT(ThreadCpuNanoseconds() - cpu, 10 * SpinNanoseconds() + 30 * kMillisecond);
  executor.join();
}

TEST_F(Waiting, ARecordWakesTheConsumer) {
  RingProducer producer(view.client(), view.ring(), view.executor(), testing::kAlive);
  for (int i = 0; i < 20; ++i) {
    std::thread client([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ErrorCode error = ErrorCode::kOk;
      ASSERT_NE(producer.reserve(8, error), nullptr);
      producer.commit(testing::Header(RecordKind::kFree), 8);
    });
    const uint64_t start = MonotonicNanoseconds();
    consumer.wait(30'000 * kMillisecond);
    EXPECT_LT(MonotonicNanoseconds() - start, 5'000 * kMillisecond);
    client.join();
    Record record;
    ASSERT_EQ(consumer.try_read(record), RingConsumer::Status::kRecord);
  }
}

TEST(Spin, EndsAtOnceWhereItMayNotSpin) {
  EXPECT_TRUE(SpinUntil([] { return true; }, 0));
  int looks = 0;
  EXPECT_FALSE(SpinUntil([&] { return ++looks < 0; }, 0));
  EXPECT_EQ(looks, 1);
}

TEST(Spin, IsBounded) {
  const uint64_t start = MonotonicNanoseconds();
  EXPECT_FALSE(SpinUntil([] { return false; }, kMillisecond));
  EXPECT_GE(MonotonicNanoseconds() - start, kMillisecond);
  EXPECT_LE(SpinNanoseconds(), 10 * kMillisecond);
}

TEST(Watch, IsBoundedAndLooksAtLeastOnce) {
  const uint64_t start = MonotonicNanoseconds();
  EXPECT_FALSE(WatchUntil([] { return false; }, kMillisecond));
  EXPECT_GE(MonotonicNanoseconds() - start, kMillisecond);
  EXPECT_TRUE(WatchUntil([] { return true; }, 0));
  EXPECT_LE(DeviceWatchNanoseconds(), 10 * kMillisecond);
}

}  // namespace
}  // namespace flagos
