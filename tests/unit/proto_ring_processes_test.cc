// SPDX-License-Identifier: Apache-2.0
// The ring between two processes, each with its own mapping of the regions: the executor's of the ring is read-only.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "proto/shm/replies.h"
#include "proto/shm/ring.h"
#include "tests/unit/proto_child.h"
#include "tests/unit/proto_session.h"

namespace flagos {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Carries out records until kClose; SYNC ones are answered with their own payload behind the target.
int Serve(const testing::Regions& regions, bool (*check)(const Record&)) {
  auto read_only = ReopenReadOnly(regions.ring_fd.get());
  if (!read_only.ok()) return 10;
  auto ring_region = Mapping::Map(read_only.value().get(), Access::kReadOnly, kPage);
  auto executor_region = Mapping::Map(regions.executor_fd.get(), Access::kReadWrite, kExecutorRegionBytes);
  if (!ring_region.ok() || !executor_region.ok()) return 11;
  const auto* const client = reinterpret_cast<const ClientPage*>(ring_region.value().data());
  auto* const page = reinterpret_cast<ExecutorPage*>(executor_region.value().data());
  RingConsumer consumer(client, {ring_region.value().data() + kPage, ring_region.value().size() - kPage}, page);
  ReplyWriter replies(client, {executor_region.value().data(), executor_region.value().size()});
  Record record;
  for (;;) {
    switch (consumer.try_read(record)) {
      case RingConsumer::Status::kMalformed: return 12;
      case RingConsumer::Status::kEmpty: consumer.wait(kSecond); continue;
      case RingConsumer::Status::kRecord: break;
    }
    if (record.header.kind == static_cast<uint16_t>(RecordKind::kClose)) return 0;
    if (!check(record)) return 13;
    if (record.header.flags & kFlagSync) {
      ReplyTarget target{};
      std::memcpy(&target, record.payload.data(), sizeof target);
      replies.reply(target.slot, record.sequence, record.payload.subspan(sizeof target));
    }
    if (record.header.flags & kFlagNotify) replies.complete(record.header.stream, record.sequence);
  }
}

void Close(RingProducer& producer) {
  ErrorCode error = ErrorCode::kOk;
  ASSERT_NE(producer.reserve(0, error), nullptr);
  producer.commit(testing::Header(RecordKind::kClose), 0);
}

TEST(RingProcesses, AMillionRecordsArriveInOrder) {
  const testing::Regions regions;
  testing::Child executor([&] {
    return Serve(regions, [](const Record& record) {
      static uint64_t expected = 0;
      uint64_t words[3];
      if (record.payload.size() != sizeof words) return false;
      std::memcpy(words, record.payload.data(), sizeof words);
      ++expected;
      return record.sequence == expected && words[0] == expected && words[1] == ~expected && words[2] == expected * 3;
    });
  });
  const testing::View view = regions.map();
  RingProducer producer(view.client(), view.ring(), view.executor(), testing::kAlive);
  ProducerLock lock;
  uint64_t next = 0;  // guarded by lock
  uint64_t last = 0;  // sequence of the newest record; guarded by lock
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (;;) {
        const std::lock_guard guard(lock);
        if (next == 1'000'000) return;
        ErrorCode error = ErrorCode::kOk;
        const uint64_t number = ++next;
        const uint64_t words[3] = {number, ~number, number * 3};
        std::byte* const at = producer.reserve(sizeof words, error);
        if (at == nullptr) return;
        std::memcpy(at, words, sizeof words);
        last = producer.commit(testing::Header(RecordKind::kCall), sizeof words);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(last, 1'000'000u);
  Close(producer);
  EXPECT_EQ(executor.wait(), 0);
}

TEST(RingProcesses, SynchronousRecordsAreAnswered) {
  const testing::Regions regions;
  testing::Child executor([&] { return Serve(regions, [](const Record&) { return true; }); });
  const testing::View view = regions.map();
  RingProducer producer(view.client(), view.ring(), view.executor(), testing::kAlive);
  ReplyReader replies(view.client(), view.replies(), testing::kAlive);
  ProducerLock lock;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<std::byte> bytes;
      for (uint64_t i = 0; i < 2000; ++i) {
        // Some come while the executor spins, some when it sleeps.
        if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        const auto slot = replies.claim();
        ASSERT_TRUE(slot.has_value());
        const uint64_t word = thread << 32 | i;
        uint64_t sequence = 0;
        {
          const std::lock_guard guard(lock);
          ErrorCode error = ErrorCode::kOk;
          std::byte* const at = producer.reserve(16, error);
          ASSERT_NE(at, nullptr);
          const ReplyTarget target{*slot, 0};
          std::memcpy(at, &target, sizeof target);
          std::memcpy(at + sizeof target, &word, sizeof word);
          sequence = producer.commit(testing::Header(RecordKind::kFence, 0, kFlagSync), 16);
        }
        ASSERT_TRUE(replies.wait(*slot, sequence, bytes));
        replies.release(*slot);
        ASSERT_EQ(bytes.size(), sizeof word);
        ASSERT_EQ(std::memcmp(bytes.data(), &word, sizeof word), 0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  Close(producer);
  EXPECT_EQ(executor.wait(), 0);
}

TEST(RingProcesses, CompletionWordsGrow) {
  const testing::Regions regions;
  testing::Child executor([&] { return Serve(regions, [](const Record&) { return true; }); });
  const testing::View view = regions.map();
  RingProducer producer(view.client(), view.ring(), view.executor(), testing::kAlive);
  ReplyReader replies(view.client(), view.replies(), testing::kAlive);
  for (int i = 0; i < 1000; ++i) {
    ErrorCode error = ErrorCode::kOk;
    ASSERT_NE(producer.reserve(0, error), nullptr);
    const auto stream = static_cast<uint16_t>(i % 70);
    const uint64_t sequence = producer.commit(testing::Header(RecordKind::kFence, 0, kFlagNotify, stream), 0);
    ASSERT_TRUE(replies.wait_complete(stream, sequence));
    ASSERT_TRUE(replies.is_complete(stream, sequence));
    ASSERT_FALSE(replies.is_complete(stream, sequence + 1));
  }
  Close(producer);
  EXPECT_EQ(executor.wait(), 0);
}

}  // namespace
}  // namespace flagos
