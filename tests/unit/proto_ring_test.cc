// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "proto/shm/futex.h"
#include "proto/shm/ring.h"
#include "tests/unit/proto_session.h"

namespace flagos {
namespace {

using testing::kAlive;
using testing::kGone;

constexpr uint64_t kSecond = 1'000'000'000;

// Writes a record whose payload is `size` bytes of a pattern that starts with `seed`. Returns its sequence, 0 where it
// could not.
uint64_t Push(RingProducer& producer, size_t size, uint8_t seed) {
  ErrorCode error = ErrorCode::kOk;
  std::byte* const at = producer.reserve(size, error);
  EXPECT_NE(at, nullptr) << static_cast<int>(error);
  if (at == nullptr) return 0;
  for (size_t i = 0; i < size; ++i) at[i] = static_cast<std::byte>(seed + i);
  RecordHeader header{};
  header.kind = static_cast<uint16_t>(RecordKind::kCall);
  header.subject = seed;
  return producer.commit(header, size);
}

// Expects that `record` is what Push wrote, padded with zeros to eight bytes.
void ExpectRecord(const Record& record, size_t size, uint8_t seed) {
  ASSERT_EQ(record.header.size, sizeof(RecordHeader) + AlignUp8(size));
  ASSERT_EQ(record.header.subject, seed);
  ASSERT_EQ(record.payload.size(), AlignUp8(size));
  for (size_t i = 0; i < record.payload.size(); ++i) {
    ASSERT_EQ(record.payload[i], i < size ? static_cast<std::byte>(seed + i) : std::byte{0}) << "at " << i;
  }
}

void Expect(RingConsumer& consumer, size_t size, uint8_t seed) {
  Record record;
  ASSERT_EQ(consumer.try_read(record), RingConsumer::Status::kRecord);
  ExpectRecord(record, size, seed);
}

class Ring : public ::testing::Test {
 protected:
  void restart() {
    view.client()->head = 0;
    view.executor()->tail = 0;
    producer.emplace(view.client(), view.ring(), view.executor(), kAlive);
    consumer.emplace(view.client(), view.ring(), view.executor());
  }
  void SetUp() override { restart(); }

  testing::Regions regions;
  testing::View view = regions.map();
  std::optional<RingProducer> producer;
  std::optional<RingConsumer> consumer;
  Record record;
};

TEST_F(Ring, KeepsOrderAndContent) {
  EXPECT_EQ(consumer->try_read(record), RingConsumer::Status::kEmpty);
  for (uint8_t i = 0; i < 100; ++i) Push(*producer, i, i);
  for (uint8_t i = 0; i < 100; ++i) Expect(*consumer, i, i);
  EXPECT_EQ(consumer->try_read(record), RingConsumer::Status::kEmpty);
}

TEST_F(Ring, CountsRecordsOnBothSides) {
  for (uint64_t i = 1; i <= 10'000; ++i) {
    ASSERT_EQ(Push(*producer, 48, 1), i);
    ASSERT_EQ(consumer->try_read(record), RingConsumer::Status::kRecord);
    ASSERT_EQ(record.sequence, i) << "pads are no records";
  }
}

TEST_F(Ring, PayloadsAreAlignedToEight) {
  Push(*producer, 24, 1);
  ASSERT_EQ(consumer->try_read(record), RingConsumer::Status::kRecord);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(record.payload.data()) % 8, 0u);
  const auto ring = view.ring();
  EXPECT_FALSE(record.payload.data() >= ring.data() && record.payload.data() < ring.data() + ring.size())
      << "a record is a copy";
}

// The end of the ring cuts a record, or leaves room for a pad of eight bytes and more, at each place where it can.
TEST_F(Ring, WrapsAtEveryOffset) {
  const size_t size = view.ring().size();
  for (size_t offset = sizeof(RecordHeader); offset <= size; offset += 8) {
    restart();
    ErrorCode error = ErrorCode::kOk;
    // The largest record fills half of the ring, so up to two bring the head to `offset`.
    for (size_t left = offset; left > 0;) {
      size_t part = std::min(left, size / 2);
      if (left - part == 8) part -= 8;
      ASSERT_NE(producer->reserve(part - sizeof(RecordHeader), error), nullptr);
      producer->commit(testing::Header(RecordKind::kFree), part - sizeof(RecordHeader));
      ASSERT_EQ(consumer->try_read(record), RingConsumer::Status::kRecord);
      left -= part;
    }
    const auto seed = static_cast<uint8_t>(offset / 8);
    const size_t payload = std::min(size - offset + 8, size_t{200}) - offset % 3;
    Push(*producer, payload, seed);
    Push(*producer, 3, seed);
    Expect(*consumer, payload, seed);
    Expect(*consumer, 3, seed);
    ASSERT_FALSE(HasFatalFailure()) << "offset " << offset;
  }
}

TEST_F(Ring, TakesTheLargestPayloadAndRefusesMore) {
  const size_t largest = producer->max_payload();
  ErrorCode error = ErrorCode::kOk;
  for (int i = 0; i < 5; ++i) {
    Push(*producer, largest, 7);
    Expect(*consumer, largest, 7);
  }
  EXPECT_EQ(producer->reserve(largest + 1, error), nullptr);
  EXPECT_EQ(error, ErrorCode::kOutOfRange);
  EXPECT_EQ(producer->reserve(SIZE_MAX, error), nullptr);
  EXPECT_EQ(error, ErrorCode::kOutOfRange);
  Push(*producer, 8, 9);
  Expect(*consumer, 8, 9);
}

TEST_F(Ring, FillsToTheLastByte) {
  const size_t size = view.ring().size();
  for (size_t written = 0; written < size; written += 64) Push(*producer, 48, 1);
  EXPECT_EQ(view.client()->head.load(), size);
  EXPECT_EQ(view.client()->blocked_count.load(), 0u);
}

TEST_F(Ring, FullRingBlocksSaysWhyAndGoesOn) {
  const size_t records = view.ring().size() / 64;
  std::thread filler([&] {
    for (size_t i = 0; i < records * 3; ++i) Push(*producer, 48, static_cast<uint8_t>(i));
  });
  const ClientPage& page = *view.client();
  while (page.blocked_reason.load() != static_cast<uint32_t>(BlockReason::kRingFull)) std::this_thread::yield();
  const uint64_t head = page.head.load();
  EXPECT_EQ(head, view.ring().size());
  while (page.blocked_since_ns.load() == 0) std::this_thread::yield();  // it follows the reason
  EXPECT_LE(page.blocked_since_ns.load(), MonotonicNanoseconds());
  EXPECT_EQ(page.blocked_count.load(), 1u);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(page.head.load(), head) << "nothing is written over what was not read";
  for (size_t i = 0; i < records * 3; ++i) {
    RingConsumer::Status status;
    while ((status = consumer->try_read(record)) == RingConsumer::Status::kEmpty) consumer->wait(kSecond);
    EXPECT_EQ(status, RingConsumer::Status::kRecord);
    ExpectRecord(record, 48, static_cast<uint8_t>(i));
    if (HasFailure()) break;
  }
  filler.join();
  EXPECT_EQ(page.blocked_reason.load(), static_cast<uint32_t>(BlockReason::kNone));
  EXPECT_EQ(page.blocked_since_ns.load(), 0u);
}

TEST_F(Ring, AFullRingOfADeadExecutorIsAnError) {
  producer.emplace(view.client(), view.ring(), view.executor(), kGone);
  for (size_t written = 0; written < view.ring().size(); written += 64) Push(*producer, 48, 1);
  ErrorCode error = ErrorCode::kOk;
  const uint64_t start = MonotonicNanoseconds();
  EXPECT_EQ(producer->reserve(48, error), nullptr);
  EXPECT_EQ(error, ErrorCode::kDeviceLost);
  EXPECT_LT(MonotonicNanoseconds() - start, kSecond);
  EXPECT_EQ(view.client()->blocked_reason.load(), static_cast<uint32_t>(BlockReason::kNone));
}

// A blocked producer is woken when credits come back: it does not find out by polling, every 50 ms.
TEST_F(Ring, CreditsWakeABlockedProducer) {
  std::thread filler([&] {
    for (size_t i = 0; i < 16 * view.ring().size() / 64; ++i) Push(*producer, 48, 1);
  });
  const uint64_t start = MonotonicNanoseconds();
  size_t read = 0;
  for (; read < 16 * view.ring().size() / 64;) {
    switch (consumer->try_read(record)) {
      case RingConsumer::Status::kRecord:
        ++read;
        if (read % 1024 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the producer falls asleep
        break;
      case RingConsumer::Status::kEmpty: consumer->wait(kSecond); break;
      case RingConsumer::Status::kMalformed: FAIL();
    }
  }
  filler.join();
  EXPECT_GT(view.client()->blocked_count.load(), 3u);
  EXPECT_LT(MonotonicNanoseconds() - start, kSecond / 2) << "16 rings, each with a pause of 2 ms";
}

TEST_F(Ring, AMillionRecordsFromFourThreads) {
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kEach = 250'000;
  struct Payload {
    uint32_t thread;
    uint32_t number;
    uint64_t filler[8];
  };
  ProducerLock lock;
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t number = 0; number < kEach; ++number) {
        const size_t size = 8 + number % 9 * 8;
        Payload payload{thread, number, {}};
        for (uint64_t& word : payload.filler) word = uint64_t{thread} << 32 | number;
        const std::lock_guard guard(lock);
        ErrorCode error = ErrorCode::kOk;
        std::byte* const at = producer->reserve(size, error);
        if (at == nullptr) return;
        std::memcpy(at, &payload, size);
        producer->commit(testing::Header(RecordKind::kCall, number), size);
      }
    });
  }
  uint32_t next[kThreads] = {};
  uint64_t sequence = 0;
  bool good = true;
  while (good && sequence < uint64_t{kThreads} * kEach) {
    const auto status = consumer->try_read(record);
    if (status == RingConsumer::Status::kEmpty) {
      consumer->wait(kSecond);
      continue;
    }
    Payload payload{};
    good = status == RingConsumer::Status::kRecord && record.payload.size() <= sizeof payload;
    if (!good) break;
    std::memcpy(&payload, record.payload.data(), record.payload.size());
    good = record.sequence == ++sequence && payload.thread < kThreads && payload.number == next[payload.thread]++ &&
           record.payload.size() == 8 + payload.number % 9 * 8 && record.header.subject == payload.number;
    for (size_t i = 0; i < payload.number % 9 && i < 8; ++i) {
      good = good && payload.filler[i] == (uint64_t{payload.thread} << 32 | payload.number);
    }
  }
  EXPECT_TRUE(good) << "record " << sequence;
  EXPECT_EQ(sequence, uint64_t{kThreads} * kEach);
  // Where a record was wrong, let the producers finish.
  while (!good && consumer->try_read(record) == RingConsumer::Status::kRecord) {
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace flagos
