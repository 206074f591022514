// SPDX-License-Identifier: Apache-2.0
#include "client/arena.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "proto/shm/memfd.h"

namespace flagos::client {
namespace {

constexpr uint64_t kBytes = 64 << 20;

class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto region = CreateRegion("test-arena", kBytes);
    ASSERT_TRUE(region.ok());
    fd_ = std::move(region).value();
    auto mapped = Mapping::Map(fd_.get(), Access::kReadWrite, kBytes);
    ASSERT_TRUE(mapped.ok());
    mapping_ = std::move(mapped).value();
    arena_ = std::make_unique<Arena>(std::span(mapping_.data(), mapping_.size()),
                                     [this](uint16_t, uint64_t sequence) { return sequence <= completed_.load(); });
  }
  // Memory that the region takes from the system.
  uint64_t resident() const {
    struct stat status {};
    ::fstat(fd_.get(), &status);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  UniqueFd fd_;
  Mapping mapping_;
  std::atomic<uint64_t> completed_{0};
  std::unique_ptr<Arena> arena_;
};

TEST_F(ArenaTest, BlocksAreAlignedAndApart) {
  std::byte* const small = arena_->allocate(10);
  std::byte* const large = arena_->allocate(10000);
  std::byte* const other = arena_->allocate(1);
  ASSERT_TRUE(small && large && other);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 4096, 0u);
  std::memset(small, 1, 10);
  std::memset(large, 2, 10000);
  std::memset(other, 3, 1);
  EXPECT_EQ(static_cast<int>(small[9]), 1);
  EXPECT_EQ(static_cast<int>(large[9999]), 2);
}

TEST_F(ArenaTest, FreedNeighboursMelt) {
  std::vector<std::byte*> blocks(16);
  for (std::byte*& block : blocks) block = arena_->allocate(kBytes / 16);
  EXPECT_EQ(arena_->allocate(1), nullptr);
  EXPECT_EQ(arena_->in_use(), kBytes);
  for (const size_t i : {1u, 3u, 2u, 0u, 15u, 14u, 4u, 5u, 6u, 13u, 12u, 11u, 10u, 9u, 8u, 7u}) arena_->free(blocks[i]);
  EXPECT_EQ(arena_->in_use(), 0u);
  EXPECT_NE(arena_->allocate(kBytes), nullptr);
}

TEST_F(ArenaTest, NamesRangesInsideLiveBlocksOnly) {
  std::byte* const block = arena_->allocate(1000);
  const auto range = arena_->range_of(block + 100, 200);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->offset, static_cast<uint64_t>(block - mapping_.data()) + 100);
  EXPECT_EQ(range->length, 200u);
  EXPECT_FALSE(arena_->range_of(block + 100, 100000).has_value());
  EXPECT_FALSE(arena_->range_of(block, SIZE_MAX).has_value());
  int local = 0;
  EXPECT_FALSE(arena_->range_of(&local).has_value());
  EXPECT_FALSE(arena_->range_of(nullptr).has_value());
  arena_->free(block);
  EXPECT_FALSE(arena_->range_of(block).has_value());
}

TEST_F(ArenaTest, AHeldBlockIsNotReusedBeforeItsRecordIsComplete) {
  std::byte* const block = arena_->allocate(kBytes);
  arena_->hold_until(block + 5, 0, 7);
  arena_->hold_until(block, 3, 9);
  arena_->hold_until(block, 3, 4);  // an earlier record changes nothing
  arena_->free(block);
  EXPECT_EQ(arena_->allocate(1), nullptr);
  EXPECT_EQ(arena_->oldest_hold(), std::pair(uint16_t{0}, uint64_t{7}));
  completed_ = 8;
  EXPECT_EQ(arena_->allocate(1), nullptr);
  EXPECT_EQ(arena_->oldest_hold(), std::pair(uint16_t{3}, uint64_t{9}));
  completed_ = 9;
  EXPECT_EQ(arena_->oldest_hold(), std::nullopt);
  EXPECT_EQ(arena_->allocate(1), block);
}

TEST_F(ArenaTest, LargeFreedBlocksGiveTheirMemoryBack) {
  std::byte* const block = arena_->allocate(32 << 20);
  std::memset(block, 1, 32 << 20);
  EXPECT_GE(resident(), uint64_t{32} << 20);
  arena_->free(block);
  EXPECT_LT(resident(), uint64_t{1} << 20);
}

TEST_F(ArenaTest, ForeignAndRepeatedFreesAreHarmless) {
  int local = 0;
  arena_->free(nullptr);
  arena_->free(&local);
  std::byte* const block = arena_->allocate(128);
  arena_->free(block);
  arena_->free(block);
  EXPECT_EQ(arena_->in_use(), 0u);
  EXPECT_EQ(arena_->allocate(SIZE_MAX), nullptr);
}

TEST_F(ArenaTest, ThreadsNeverShareABlock) {
  std::atomic<bool> bad{false};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<std::byte*, size_t>> mine;
    for (int step = 0; step < 5000; ++step) {
      if (mine.size() < 20 && random() % 2 == 0) {
        const size_t size = 1 + random() % 100'000;
        if (std::byte* const block = arena_->allocate(size)) {
          block[0] = block[size - 1] = static_cast<std::byte>(seed);
          mine.emplace_back(block, size);
        }
      } else if (!mine.empty()) {
        const auto [block, size] = mine.back();
        if (block[0] != static_cast<std::byte>(seed) || block[size - 1] != static_cast<std::byte>(seed)) bad = true;
        if (random() % 3 == 0) arena_->hold_until(block, static_cast<uint16_t>(seed), completed_ + 1);
        arena_->free(block);
        mine.pop_back();
        ++completed_;
      }
    }
    for (const auto& [block, size] : mine) arena_->free(block);
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(bad);
  completed_ = UINT64_MAX;
  EXPECT_NE(arena_->allocate(kBytes), nullptr);
}

}  // namespace
}  // namespace flagos::client
