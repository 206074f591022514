// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "proto/shm/ring.h"

namespace flagos {
namespace {

TEST(ProducerLock, ExcludesUnderContention) {
  ProducerLock lock;
  uint64_t count = 0;  // plain: the lock alone guards it
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 100'000; ++turn) {
        const std::lock_guard guard(lock);
        ++count;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, 600'000u);
}

TEST(ProducerLock, TryLockNeverWaits) {
  ProducerLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

// A holder that is off its core for long: the others sleep, and all of them are woken.
TEST(ProducerLock, WaitersSleepAndAllGetTheirTurn) {
  ProducerLock lock;
  std::atomic<int> turns = 0;
  std::vector<std::thread> threads;
  for (int round = 0; round < 20; ++round) {
    lock.lock();
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const std::lock_guard guard(lock);
        ++turns;
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(turns.load(), round * 4);
    lock.unlock();
    for (auto& thread : threads) thread.join();
    threads.clear();
    EXPECT_EQ(turns.load(), (round + 1) * 4);
  }
}

}  // namespace
}  // namespace flagos
