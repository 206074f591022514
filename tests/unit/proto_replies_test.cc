// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "proto/shm/futex.h"
#include "proto/shm/replies.h"
#include "tests/unit/proto_session.h"

namespace flagos {
namespace {

using testing::kAlive;
using testing::kGone;

constexpr uint64_t kMillisecond = 1'000'000;

class Replies : public ::testing::Test {
 protected:
  testing::Regions regions;
  testing::View view = regions.map();
  ReplyWriter writer{view.client(), view.replies()};
  ReplyReader reader{view.client(), view.replies(), kAlive};
};

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST_F(Replies, AnAnswerIsCopiedOut) {
  const std::string text = "an answer";
  const uint32_t slot = reader.claim().value();
  writer.reply(slot, 5, BytesOf(text));
  std::vector<std::byte> bytes;
  ASSERT_TRUE(reader.wait(slot, 5, bytes));
  ASSERT_EQ(bytes.size(), text.size());
  EXPECT_EQ(std::memcmp(bytes.data(), text.data(), text.size()), 0);
  reader.release(slot);
}

TEST_F(Replies, TheLargestAnswerFits) {
  const std::vector<std::byte> large(kMaxReplyBytes, std::byte{7});
  const uint32_t last = kReplySlotCount - 1;
  writer.reply(last, 1, large);
  std::vector<std::byte> bytes;
  ASSERT_TRUE(reader.wait(last, 1, bytes));
  EXPECT_EQ(bytes, large);
}

TEST_F(Replies, WakeAllReachesEveryWordThatIsSleptOn) {
  const uint32_t last = kReplySlotCount - 1;
  auto* const slot = reinterpret_cast<ReplySlot*>(view.replies().data() + kReplyOffset + last * uint64_t{kReplyBytes});
  for (auto* word : {&view.executor()->tail, &view.executor()->completed[kMaxStreams - 1], &slot->sequence}) {
    std::atomic<bool> woken{false};
    std::thread sleeper([&] {
      FutexWait(*word, 0, std::chrono::hours(1));
      woken = true;
    });
    // Again, because there is no telling when it sleeps.
    while (!woken) WakeAll(view.replies());
    sleeper.join();
  }
}

TEST_F(Replies, ASizeBeyondTheSlotIsNotBelieved) {
  const uint32_t slot = reader.claim().value();
  writer.reply(slot, 1, {});
  auto* const head = reinterpret_cast<ReplySlot*>(view.replies().data() + kReplyOffset + slot * uint64_t{kReplyBytes});
  head->size = UINT32_MAX;
  std::vector<std::byte> bytes;
  ASSERT_TRUE(reader.wait(slot, 1, bytes));
  EXPECT_EQ(bytes.size(), kMaxReplyBytes);
}

TEST_F(Replies, ManyThreadsEachGetTheirOwn) {
  struct Request {
    uint32_t slot;
    uint64_t sequence;
    uint64_t word;
  };
  std::mutex mutex;
  std::deque<Request> requests;  // stands for the ring
  uint64_t next = 0;
  bool done = false;
  // Two threads answer, as a dispatch thread and a poller do.
  std::vector<std::thread> executors;
  for (int i = 0; i < 2; ++i) {
    executors.emplace_back([&] {
      for (;;) {
        Request request{};
        {
          const std::lock_guard guard(mutex);
          if (requests.empty()) {
            if (done) return;
            continue;
          }
          request = requests.front();
          requests.pop_front();
        }
        if (request.sequence % 512 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
        writer.reply(request.slot, request.sequence, std::as_bytes(std::span(&request.word, 1)));
      }
    });
  }
  std::vector<std::thread> clients;
  // More threads than slots: some wait for a slot.
  for (uint64_t thread = 0; thread < kReplySlotCount + 8; ++thread) {
    clients.emplace_back([&, thread] {
      std::vector<std::byte> bytes;
      for (uint64_t i = 0; i < 200; ++i) {
        const uint32_t slot = reader.claim().value();
        const uint64_t word = thread << 32 | i;
        uint64_t sequence = 0;
        {
          const std::lock_guard guard(mutex);
          sequence = ++next;
          requests.push_back({slot, sequence, word});
        }
        ASSERT_TRUE(reader.wait(slot, sequence, bytes));
        reader.release(slot);
        ASSERT_EQ(bytes.size(), sizeof word);
        ASSERT_EQ(std::memcmp(bytes.data(), &word, sizeof word), 0);
      }
    });
  }
  for (auto& thread : clients) thread.join();
  {
    const std::lock_guard guard(mutex);
    done = true;
  }
  for (auto& thread : executors) thread.join();
  EXPECT_EQ(view.client()->sleepers.load(), 0u);
  EXPECT_EQ(view.client()->blocked_reason.load(), 0u);
}

TEST_F(Replies, AThreadWithoutASlotSaysWhyItWaits) {
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < kReplySlotCount; ++i) slots.push_back(reader.claim().value());
  std::sort(slots.begin(), slots.end());
  EXPECT_EQ(std::adjacent_find(slots.begin(), slots.end()), slots.end()) << "each slot has one owner";
  std::thread late([&] { reader.release(reader.claim().value()); });
  while (view.client()->blocked_reason.load() != static_cast<uint32_t>(BlockReason::kReplySlots))
    std::this_thread::yield();
  reader.release(slots.front());
  late.join();
  EXPECT_EQ(view.client()->blocked_reason.load(), 0u);
  EXPECT_EQ(view.client()->blocked_count.load(), 1u);
}

TEST_F(Replies, CompletionNeverTurnsBack) {
  writer.complete(3, 10);
  writer.complete(3, 9);
  EXPECT_TRUE(reader.is_complete(3, 10));
  EXPECT_FALSE(reader.is_complete(3, 11));
  EXPECT_FALSE(reader.is_complete(4, 1));
  EXPECT_TRUE(reader.wait_complete(3, 10));
  EXPECT_TRUE(reader.wait_complete(kMaxStreams - 1, 0));
}

TEST_F(Replies, CompletionWakesEveryWaiter) {
  std::vector<std::thread> threads;
  for (uint64_t sequence = 1; sequence <= 8; ++sequence) {
    threads.emplace_back([&, sequence] { EXPECT_TRUE(reader.wait_complete(0, sequence)); });
  }
  for (uint64_t sequence = 1; sequence <= 8; ++sequence) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    writer.complete(0, sequence);
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(Replies, AnExecutorThatIsGoneEndsEveryWait) {
  ReplyReader orphan(view.client(), view.replies(), kGone);
  std::vector<std::byte> bytes;
  const uint64_t start = MonotonicNanoseconds();
  EXPECT_FALSE(orphan.wait(0, 1, bytes));
  EXPECT_FALSE(orphan.wait_complete(0, 1));
  for (uint32_t i = 0; i < kReplySlotCount; ++i) ASSERT_TRUE(orphan.claim().has_value());
  EXPECT_FALSE(orphan.claim().has_value());
  EXPECT_LT(MonotonicNanoseconds() - start, 1000 * kMillisecond);
  EXPECT_EQ(view.client()->sleepers.load(), 0u);
  EXPECT_EQ(view.client()->blocked_reason.load(), 0u);
}

TEST_F(Replies, AnAnswerBeforeTheEndStillCounts) {
  ReplyReader orphan(view.client(), view.replies(), [&] {
    writer.complete(2, 7);  // the last thing that it did
    return false;
  });
  EXPECT_TRUE(orphan.wait_complete(2, 7));
  EXPECT_FALSE(orphan.wait_complete(2, 8));
}

}  // namespace
}  // namespace flagos
