// SPDX-License-Identifier: Apache-2.0
// A consumer whose client writes what it likes into the ring, also while it is being read.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "proto/shm/futex.h"
#include "proto/shm/ring.h"
#include "tests/unit/proto_child.h"
#include "tests/unit/proto_session.h"

namespace flagos {
namespace {

constexpr auto kRecord = RingConsumer::Status::kRecord;
constexpr auto kMalformed = RingConsumer::Status::kMalformed;
constexpr uint16_t kCall = static_cast<uint16_t>(RecordKind::kCall);
constexpr uint16_t kPad = static_cast<uint16_t>(RecordKind::kPad);

class HostileRing : public ::testing::Test {
 protected:
  void write(size_t at, uint32_t bytes, uint16_t kind) {
    RecordHeader header{};
    header.size = bytes;
    header.kind = kind;
    std::memcpy(view.ring().data() + at, &header, sizeof header);
  }
  // What a fresh consumer makes of the ring.
  RingConsumer::Status read(uint64_t head) {
    view.client()->head = head;
    RingConsumer consumer(view.client(), view.ring(), view.executor());
    return consumer.try_read(record);
  }

  testing::Regions regions;
  testing::View view = regions.map();
  const uint32_t size = static_cast<uint32_t>(view.ring().size());
  Record record;
};

TEST_F(HostileRing, RefusesAHeadThatJumped) {
  write(0, 16, kCall);
  EXPECT_EQ(read(16), kRecord);
  EXPECT_EQ(read(uint64_t{size} + 8), kMalformed) << "more than the ring holds";
  EXPECT_EQ(read(UINT64_MAX - 7), kMalformed) << "backwards";
  EXPECT_EQ(read(17), kMalformed) << "no multiple of eight";
}

TEST_F(HostileRing, RefusesAHeadThatTurnsBack) {
  write(0, 16, kCall);
  view.client()->head = 16;
  RingConsumer consumer(view.client(), view.ring(), view.executor());
  ASSERT_EQ(consumer.try_read(record), kRecord);
  view.client()->head = 8;
  EXPECT_EQ(consumer.try_read(record), kMalformed);
}

TEST_F(HostileRing, RefusesSizesThatCannotBe) {
  const auto with_size = [&](uint32_t bytes, uint64_t head) {
    write(0, bytes, kCall);
    return read(head);
  };
  EXPECT_EQ(with_size(64, 64), kRecord);
  EXPECT_EQ(with_size(0, 64), kMalformed) << "would be read for ever";
  EXPECT_EQ(with_size(8, 64), kMalformed) << "no room for a header";
  EXPECT_EQ(with_size(20, 64), kMalformed) << "no multiple of eight";
  EXPECT_EQ(with_size(72, 64), kMalformed) << "beyond the head";
  EXPECT_EQ(with_size(UINT32_MAX, size), kMalformed);
  EXPECT_EQ(with_size(UINT32_MAX & ~7u, size), kMalformed);
  EXPECT_EQ(with_size(size / 2, size), kRecord);
  EXPECT_EQ(with_size(size / 2 + 8, size), kMalformed) << "larger than a producer can write";
}

TEST_F(HostileRing, RefusesARecordAcrossTheEnd) {
  write(0, size / 2, kCall);
  write(size / 2, size / 2 - 8, kCall);
  view.client()->head = size;
  RingConsumer consumer(view.client(), view.ring(), view.executor());
  ASSERT_EQ(consumer.try_read(record), kRecord);
  ASSERT_EQ(consumer.try_read(record), kRecord);
  // Eight bytes are left before the end: only a pad can lie there.
  const uint64_t call = 16 | uint64_t{kCall} << 32;
  std::memcpy(view.ring().data() + size - 8, &call, 8);
  view.client()->head = uint64_t{size} + 64;
  EXPECT_EQ(consumer.try_read(record), kMalformed);
}

TEST_F(HostileRing, RefusesAPadThatDoesNotReachTheEnd) {
  write(0, 64, kPad);
  EXPECT_EQ(read(128), kMalformed);
}

TEST_F(HostileRing, APadAloneIsNoRecord) {
  write(0, size / 2, kCall);
  write(size / 2, size / 2, kPad);
  view.client()->head = size;
  RingConsumer consumer(view.client(), view.ring(), view.executor());
  ASSERT_EQ(consumer.try_read(record), kRecord);
  EXPECT_EQ(consumer.try_read(record), RingConsumer::Status::kEmpty);
  EXPECT_EQ(view.executor()->tail.load(), size) << "its credits come back";
}

// A process rewrites a record as fast as it can while it is read. The record that comes out is of one piece: the size
// that was checked is the size that was copied, and the copy does not change any more.
TEST_F(HostileRing, RewritingARecordWhileItIsReadHarmsNothing) {
  constexpr uint32_t kSizes[] = {16, 64, 4096, 24, 0, 0xfffffff8};
  view.client()->head = 4096;
  testing::Child child([&] {
    const testing::View own = regions.map();
    auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(own.ring().data());
    for (uint64_t turn = 0;; ++turn) {
      words[0].store(kSizes[turn % std::size(kSizes)] | uint64_t{kCall} << 32, std::memory_order_relaxed);
      words[1].store(turn, std::memory_order_relaxed);
      for (size_t i = 2; i < 8; ++i) words[i].store(turn, std::memory_order_relaxed);
    }
    return 0;
  });
  int records = 0;
  int refused = 0;
  // Until both kinds were seen: the child may be slow to start.
  const uint64_t deadline = MonotonicNanoseconds() + 20'000'000'000;
  for (int i = 0; i < 100'000 || ((records == 0 || refused == 0) && MonotonicNanoseconds() < deadline); ++i) {
    RingConsumer consumer(view.client(), view.ring(), view.executor());
    if (consumer.try_read(record) == kMalformed) {
      ++refused;
      continue;
    }
    ++records;
    ASSERT_TRUE(record.header.size == 16 || record.header.size == 24 || record.header.size == 64 ||
                record.header.size == 4096)
        << record.header.size;
    ASSERT_EQ(record.payload.size(), record.header.size - sizeof(RecordHeader));
    const std::vector<std::byte> first(record.payload.begin(), record.payload.end());
    ASSERT_TRUE(std::equal(first.begin(), first.end(), record.payload.begin()));
  }
  EXPECT_GT(records, 0);
  EXPECT_GT(refused, 0);
}

// What the executor's consumer waits for is the client's to write: a lying head must not keep it from being woken.
TEST_F(HostileRing, AClientThatStealsWakeUpsDoesNotKeepTheConsumerAsleep) {
  testing::Child thief([&] {
    const testing::View own = regions.map();
    for (;;) FutexWait(own.client()->head, 0, std::chrono::seconds(1));
    return 0;
  });
  RingConsumer consumer(view.client(), view.ring(), view.executor());
  for (int i = 0; i < 50; ++i) {
    std::thread waker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      consumer.wake();
    });
    const uint64_t start = MonotonicNanoseconds();
    consumer.wait(30'000'000'000);
    waker.join();
    ASSERT_LT(MonotonicNanoseconds() - start, 5'000'000'000u);
  }
}

}  // namespace
}  // namespace flagos
