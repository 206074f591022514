// SPDX-License-Identifier: Apache-2.0
#include "client/forward/signature_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace flagos::client {
namespace {

std::vector<std::byte> Bytes(uint64_t value, size_t size = 24) {
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &value, std::min(size, sizeof value));
  return bytes;
}

uint32_t Find(SignatureTable& table, uint64_t value) { return table.find(HashSignature(Bytes(value)), Bytes(value)); }
uint32_t Insert(SignatureTable& table, uint64_t value) {
  return table.insert(HashSignature(Bytes(value)), Bytes(value));
}

TEST(HashSignatureTest, EveryByteCounts) {
  for (const size_t size : {1, 7, 12, 15, 16, 17, 31, 32, 33, 100}) {
    std::set<uint64_t> hashes{HashSignature(Bytes(0, size))};
    for (size_t i = 0; i < size; ++i) {
      std::vector<std::byte> bytes = Bytes(0, size);
      bytes[i] = std::byte{1};
      hashes.insert(HashSignature(bytes));
    }
    EXPECT_EQ(hashes.size(), size + 1) << size;
  }
}

TEST(HashSignatureTest, LengthCounts) { EXPECT_NE(HashSignature(Bytes(0, 16)), HashSignature(Bytes(0, 32))); }

TEST(SignatureTableTest, FindsWhatWasInserted) {
  SignatureTable table(64);
  for (uint64_t value = 0; value < 64; ++value) EXPECT_EQ(Insert(table, value), value);
  for (uint64_t value = 0; value < 64; ++value) EXPECT_EQ(Find(table, value), value);
  EXPECT_EQ(Find(table, 64), SignatureTable::kNone);
  EXPECT_TRUE(table.full());
}

TEST(SignatureTableTest, EqualHashesAreToldApartByTheirBytes) {
  SignatureTable table(16);
  const uint32_t one = table.insert(5, Bytes(1));
  const uint32_t two = table.insert(5, Bytes(2));
  EXPECT_EQ(table.find(5, Bytes(1)), one);
  EXPECT_EQ(table.find(5, Bytes(2)), two);
  EXPECT_EQ(table.find(5, Bytes(3)), SignatureTable::kNone);
}

TEST(SignatureTableTest, EvictsWhatWasNotUsedForLongest) {
  SignatureTable table(32);
  for (uint64_t value = 0; value < 32; ++value) Insert(table, value);
  Find(table, 0);
  Find(table, 1);
  EXPECT_THAT(table.evict(), ::testing::UnorderedElementsAre(2, 3));
  EXPECT_EQ(table.size(), 30u);
  EXPECT_EQ(Find(table, 2), SignatureTable::kNone);
  for (const uint64_t value : {0, 1, 4, 31}) EXPECT_EQ(Find(table, value), value);
  EXPECT_THAT((std::vector{Insert(table, 100), Insert(table, 101)}), ::testing::UnorderedElementsAre(2, 3));
  EXPECT_TRUE(table.full());
}

TEST(SignatureTableTest, OutcomesOfDroppedSignaturesLiveOn) {
  SignatureTable table(16);
  for (uint64_t value = 0; value < 16; ++value) Insert(table, value);
  Outcome outcome;
  outcome.outputs.emplace_back().tag = OutputTag::kTensor;
  table[0].outcome = std::make_shared<const KnownOutcome>(outcome);
  const auto held = table[0].outcome;
  table.evict();
  EXPECT_EQ(held->storages.size(), 1u);
  EXPECT_EQ(held->outcome, outcome);
}

}  // namespace
}  // namespace flagos::client
