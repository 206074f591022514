// SPDX-License-Identifier: Apache-2.0
#include "client/address_space.h"

#include <gtest/gtest.h>

#include <bit>

namespace flagos::client {
namespace {

std::unique_ptr<AddressSpace> Reserve() {
  auto reserved = AddressSpace::Reserve();
  EXPECT_TRUE(reserved.ok()) << reserved.error().message;
  return std::move(reserved).value();
}

TEST(AddressSpace, RangesDoNotMeet) {
  const auto space = Reserve();
  const uint64_t bytes[] = {1, 511, 512, 513, 4096, 1 << 20, uint64_t{3} << 30};
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (int round = 0; round < 3; ++round) {
    for (const uint64_t size : bytes) {
      const uint64_t at = space->take(size, 1);
      ASSERT_NE(at, 0u);
      EXPECT_EQ(at % 512, 0u);
      for (const auto& [other, length] : ranges) EXPECT_TRUE(at + size < other || other + length < at);
      ranges.emplace_back(at, size);
    }
  }
}

TEST(AddressSpace, KnowsTheDeviceOfEveryAddressUpToOnePastTheEnd) {
  const auto space = Reserve();
  const uint64_t first = space->take(4096, 2);
  const uint64_t second = space->take(4096, 3);
  EXPECT_EQ(space->device_of(first), 2);
  EXPECT_EQ(space->device_of(first + 4096), 2);
  EXPECT_EQ(space->device_of(second + 17), 3);
  space->give_back(first);
  EXPECT_EQ(space->device_of(first), std::nullopt);
  EXPECT_EQ(space->device_of(second), 3);
  int local = 0;
  EXPECT_FALSE(space->contains(reinterpret_cast<uint64_t>(&local)));
  EXPECT_EQ(space->device_of(reinterpret_cast<uint64_t>(&local)), std::nullopt);
}

TEST(AddressSpace, ARepeatedStepIsGivenTheSameAddresses) {
  const auto space = Reserve();
  const uint64_t kept = space->take(1000, 0);
  std::vector<uint64_t> before;
  for (int step = 0; step < 3; ++step) {
    std::vector<uint64_t> now;
    for (const uint64_t size : {100u, 1000u, 100u, 5000u}) now.push_back(space->take(size, 0));
    for (const uint64_t at : now) space->give_back(at);
    if (step > 0) {
      EXPECT_EQ(now, before);
    }
    before = now;
  }
  EXPECT_EQ(space->device_of(kept), 0);
}

TEST(AddressSpace, RefusesWhatNoRangeHolds) {
  const auto space = Reserve();
  EXPECT_EQ(space->take(space->max_bytes() + 1, 0), 0u);
  EXPECT_EQ(space->take(UINT64_MAX, 0), 0u);
  const uint64_t most = space->take(space->max_bytes(), 0);
  EXPECT_NE(most, 0u);
  space->give_back(most);
  space->give_back(0);
}

TEST(AddressSpaceDeathTest, TouchingAnAddressIsAFault) {
  const auto space = Reserve();
  const uint64_t at = space->take(64, 0);
  EXPECT_DEATH(*std::bit_cast<volatile char*>(at) = 1, "");
}

}  // namespace
}  // namespace flagos::client
