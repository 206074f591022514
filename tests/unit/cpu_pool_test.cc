// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace flagos::cpu {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(CpuSizeClass, HoldsItsSizesAndWastesLittle) {
  for (uint64_t bytes = 1; bytes <= kLargestSmall; bytes += bytes < 5000 ? 1 : 997) {
    const size_t size_class = SizeClass(bytes);
    ASSERT_LT(size_class, kSizeClasses);
    ASSERT_GE(ClassBytes(size_class), bytes);
    ASSERT_EQ(ClassBytes(size_class) % kAlignment, 0u);
    ASSERT_EQ(SizeClass(ClassBytes(size_class)), size_class);
    if (bytes > 1024) {
      ASSERT_LE(ClassBytes(size_class) - bytes, bytes / 8);
    }
  }
}

class CpuPool : public ::testing::Test {
 protected:
  DevicePool pool_{256 * kMiB};
};

TEST_F(CpuPool, AFreedBlockIsTheNextOfItsSize) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{1000}, 100 * 1024 * uint64_t{1}, kMiB, 40 * kMiB}) {
    Block* first = pool_.allocate(bytes);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data) % kAlignment, 0u);
    std::memset(first->data, 7, bytes);
    std::byte* data = first->data;
    DevicePool::Release(first->data);
    Block* second = pool_.allocate(bytes);
    EXPECT_EQ(second->data, data);
    DevicePool::Release(second->data);
  }
  EXPECT_EQ(pool_.stats().allocated_bytes, 0);
}

TEST_F(CpuPool, LargeBlocksFitWell) {
  Block* small = pool_.allocate(4 * kMiB);
  Block* large = pool_.allocate(64 * kMiB);
  DevicePool::Release(small->data);
  DevicePool::Release(large->data);
  Block* fits = pool_.allocate(3 * kMiB + 512 * 1024);
  EXPECT_EQ(fits->size, 4 * kMiB);
  Block* other = pool_.allocate(20 * kMiB);  // far smaller than what is free
  EXPECT_EQ(other->size, 20 * kMiB);
  DevicePool::Release(fits->data);
  DevicePool::Release(other->data);
}

TEST_F(CpuPool, SegmentsAreMemfds) {
  Block* block = pool_.allocate(2 * kMiB);
  EXPECT_GE(block->slab->segment->fd(), 0);
  DevicePool::Release(block->data);
}

TEST_F(CpuPool, FiguresArePeaksAndWhatIsLive) {
  DeviceFigures figures;
  pool_.report_to(&figures);
  Block* a = pool_.allocate(100);
  Block* b = pool_.allocate(8 * kMiB);
  EXPECT_EQ(figures.allocated_bytes, 128 + static_cast<int64_t>(8 * kMiB));
  DevicePool::Release(b->data);
  EXPECT_EQ(figures.allocated_bytes, 128);
  EXPECT_EQ(figures.peak_allocated_bytes, 128 + static_cast<int64_t>(8 * kMiB));
  EXPECT_EQ(figures.reserved_bytes / static_cast<int64_t>(kMiB), 10);  // and a page for the large block's head
  pool_.trim();
  EXPECT_EQ(figures.reserved_bytes, static_cast<int64_t>(2 * kMiB));
  pool_.reset_peaks();
  EXPECT_EQ(figures.peak_allocated_bytes, 128);
  DevicePool::Release(a->data);
  pool_.trim();
  EXPECT_EQ(figures.reserved_bytes, 0);
  const MemoryStats stats = pool_.stats();
  EXPECT_EQ(stats.allocations, 2);
  EXPECT_EQ(stats.frees, 2);
  EXPECT_EQ(stats.device_allocations, stats.device_frees);
  pool_.report_to(nullptr);
}

TEST_F(CpuPool, CapacityIsNotExceeded) {
  EXPECT_EQ(pool_.allocate(257 * kMiB), nullptr);
  EXPECT_EQ(pool_.allocate(~uint64_t{0}), nullptr);
  Block* most = pool_.allocate(200 * kMiB);
  EXPECT_EQ(pool_.allocate(100 * kMiB), nullptr);
  DevicePool::Release(most->data);
  Block* now = pool_.allocate(100 * kMiB);  // what is cached is given up for it
  ASSERT_NE(now, nullptr);
  EXPECT_EQ(pool_.stats().reserved_bytes / static_cast<int64_t>(kMiB), 100);
  DevicePool::Release(now->data);
}

TEST_F(CpuPool, ThreadsShareIt) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed) {
    threads.emplace_back([this, seed] {
      std::mt19937 random(seed);
      std::vector<Block*> mine;
      for (int i = 0; i < 3000; ++i) {
        if (mine.size() < 20 || random() % 2 == 0) {
          const uint64_t bytes = 1 + random() % (i % 50 == 0 ? 3 * kMiB : 10000);
          Block* block = pool_.allocate(bytes);
          ASSERT_NE(block, nullptr);
          std::memset(block->data, static_cast<int>(seed), 64);
          mine.push_back(block);
        } else {
          const size_t pick = random() % mine.size();
          ASSERT_EQ(mine[pick]->data[63], std::byte(seed));
          DevicePool::Release(mine[pick]->data);
          mine.erase(mine.begin() + static_cast<ptrdiff_t>(pick));
        }
        if (i % 500 == 0) pool_.trim();
        if (mine.size() > 40) {
          DevicePool::Release(mine.back()->data);
          mine.pop_back();
        }
      }
      for (Block* block : mine) DevicePool::Release(block->data);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool_.stats().allocated_bytes, 0);
  pool_.trim();
  EXPECT_EQ(pool_.stats().reserved_bytes, 0);
}

}  // namespace
}  // namespace flagos::cpu
