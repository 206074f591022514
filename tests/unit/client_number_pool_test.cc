// SPDX-License-Identifier: Apache-2.0
#include "client/number_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace flagos::client {
namespace {

TEST(NumberPool, GivesLowestFreeFirst) {
  NumberPool pool(1, 100);
  for (uint32_t i = 1; i <= 10; ++i) EXPECT_EQ(pool.take(), i);
  pool.give_back(7);
  pool.give_back(3);
  pool.give_back(9);
  EXPECT_EQ(pool.in_use(), 7u);
  EXPECT_EQ(pool.take(), 3u);
  EXPECT_EQ(pool.take(), 7u);
  EXPECT_EQ(pool.take(), 9u);
  EXPECT_EQ(pool.take(), 11u);
}

TEST(NumberPool, SaysWhenAllAreInUse) {
  NumberPool pool(5, 2);
  EXPECT_EQ(pool.take(), 5u);
  EXPECT_EQ(pool.take(), 6u);
  EXPECT_EQ(pool.take(), NumberPool::kNone);
  pool.give_back(6);
  EXPECT_EQ(pool.take(), 6u);
  EXPECT_EQ(pool.take(), NumberPool::kNone);
}

// The tree against a sorted set, over more numbers than one word of any but the top level covers.
TEST(NumberPool, AgreesWithASortedSet) {
  constexpr uint32_t kNumbers = 600'000;
  NumberPool pool(1, kNumbers);
  for (uint32_t i = 1; i <= kNumbers; ++i) ASSERT_EQ(pool.take(), i);
  std::set<uint32_t> free;
  std::vector<uint32_t> used(kNumbers);
  for (uint32_t i = 0; i < kNumbers; ++i) used[i] = i + 1;
  std::mt19937 random(1);
  for (int step = 0; step < 400'000; ++step) {
    if (!used.empty() && (free.empty() || random() % 5 < 3)) {
      const size_t at = random() % used.size();
      std::swap(used[at], used.back());
      pool.give_back(used.back());
      free.insert(used.back());
      used.pop_back();
    } else {
      const uint32_t number = pool.take();
      ASSERT_EQ(number, *free.begin());
      free.erase(free.begin());
      used.push_back(number);
    }
  }
  EXPECT_EQ(pool.in_use(), used.size());
}

}  // namespace
}  // namespace flagos::client
