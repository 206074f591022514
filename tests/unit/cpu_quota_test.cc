// SPDX-License-Identifier: Apache-2.0
// A lease's quota on the CPU vendor's memory, checked by what the kernel says the process holds.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "vendors/cpu/pool.h"

namespace flagos::cpu {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Bytes of all device memory of this process: the sizes of its memfds of that name, from /proc.
uint64_t HeldByKernelsWord() {
  uint64_t bytes = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder)) {
    char target[256]{};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    if (::readlink(path.c_str(), target, sizeof target - 1) <= 0) continue;
    struct stat status {};
    if (std::strstr(target, "memfd:flagos-cpu") != nullptr && ::stat(path.c_str(), &status) == 0) {
      bytes += static_cast<uint64_t>(status.st_size);
    }
  }
  ::closedir(folder);
  return bytes;
}

class CpuQuota : public ::testing::Test {
 protected:
  void limit(uint64_t bytes) {
    page_ = std::move(CreateLeasePage().value());
    LeasePageOf(page_.mapping).quota[0].store(bytes);
  }
  std::unique_ptr<LeaseAccount> join(uint64_t session) {
    return std::move(LeaseAccount::Join(UniqueFd(::dup(page_.fd.get())), session, {0}).value());
  }
  NewLeasePage page_;
};

TEST_F(CpuQuota, TwoSessionsShareIt) {
  limit(20 * kMiB);
  const auto one = join(1), two = join(2);
  DevicePool first(256 * kMiB), second(256 * kMiB);
  ASSERT_TRUE(first.charge_to(one.get(), 0) && second.charge_to(two.get(), 0));
  Block* twelve = first.allocate(12 * kMiB);
  ASSERT_NE(twelve, nullptr);
  EXPECT_EQ(second.allocate(10 * kMiB), nullptr);
  Block* six = second.allocate(6 * kMiB);
  ASSERT_NE(six, nullptr);
  EXPECT_EQ(first.lease().used, HeldByKernelsWord());
  DevicePool::Release(twelve->data);
  EXPECT_EQ(second.allocate(10 * kMiB), nullptr) << "the other session's cache is its own";
  first.trim();
  Block* ten = second.allocate(10 * kMiB);
  ASSERT_NE(ten, nullptr);
  DevicePool::Release(six->data);
  DevicePool::Release(ten->data);
  Block* eighteen = second.allocate(18 * kMiB);
  ASSERT_NE(eighteen, nullptr) << "its own cache is given up for it";
  DevicePool::Release(eighteen->data);
}

TEST_F(CpuQuota, SmallRequestsUseTheLastOfIt) {
  limit(kMiB);  // less than the segments that small blocks are cut from
  const auto account = join(1);
  DevicePool pool(256 * kMiB);
  ASSERT_TRUE(pool.charge_to(account.get(), 0));
  std::vector<Block*> blocks;
  while (Block* block = pool.allocate(100 * 1024)) blocks.push_back(block);
  EXPECT_GE(blocks.size(), 9u);
  EXPECT_LE(HeldByKernelsWord(), kMiB);
  for (Block* block : blocks) DevicePool::Release(block->data);
}

TEST_F(CpuQuota, WhatWasThereBeforeIsCharged) {
  limit(4 * kMiB);
  const auto account = join(1);
  DevicePool pool(256 * kMiB);
  Block* before = pool.allocate(5 * kMiB);
  EXPECT_FALSE(pool.charge_to(account.get(), 0));
  DevicePool::Release(before->data);
  EXPECT_TRUE(pool.charge_to(account.get(), 0)) << "what is cached is given back first";
  EXPECT_EQ(account->charged(0), 0u);
}

TEST_F(CpuQuota, AMillionRandomAllocationsHoldNotAByteMore) {
  constexpr uint64_t kQuota = 48 * kMiB;
  limit(kQuota);
  const auto account = join(1);
  DevicePool pool(1024 * kMiB);
  ASSERT_TRUE(pool.charge_to(account.get(), 0));
  std::mt19937_64 random(20261201);
  std::vector<Block*> live;
  uint64_t refused = 0, most = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    if (live.empty() || random() % 100 < 55) {
      // Mostly small, up to 8 MiB: as many of each order of magnitude.
      const uint64_t bytes = 1 + random() % (uint64_t{1} << (5 + random() % 19));
      Block* const block = pool.allocate(bytes);
      if (block == nullptr) {
        ++refused;
        // What a program does then: it frees something.
        for (int n = 0; n < 8 && !live.empty(); ++n) {
          DevicePool::Release(live.back()->data);
          live.pop_back();
        }
        continue;
      }
      live.push_back(block);
      std::swap(live[random() % live.size()], live.back());
    } else {
      DevicePool::Release(live.back()->data);
      live.pop_back();
    }
    if (i % 64 != 0) continue;
    const uint64_t held = HeldByKernelsWord();
    most = std::max(most, held);
    ASSERT_LE(held, kQuota) << "after allocation " << i;
    ASSERT_EQ(held, account->charged(0)) << "after allocation " << i;
  }
  EXPECT_GT(refused, 1000u) << "the quota was not reached often enough to mean anything";
  EXPECT_GT(most, kQuota * 9 / 10);
  for (Block* block : live) DevicePool::Release(block->data);
  pool.trim();
  EXPECT_EQ(account->charged(0), 0u);
  EXPECT_EQ(HeldByKernelsWord(), 0u);
}

}  // namespace
}  // namespace flagos::cpu
