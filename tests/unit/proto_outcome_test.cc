// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "proto/wire/signature.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

using testing::Bytes;
using testing::Join;

Output Tensor(std::vector<int64_t> sizes, uint64_t bytes) {
  Output output;
  output.tag = OutputTag::kTensor;
  output.geometry.dtype = DType::kFloat32;
  output.geometry.strides.assign(sizes.size(), 1);
  output.geometry.sizes = std::move(sizes);
  output.storage_bytes = bytes;
  return output;
}

Output Alias(uint16_t input) {
  Output output = Tensor({4}, 16);
  output.tag = OutputTag::kAlias;
  output.alias = input;
  return output;
}

Output Plain(OutputTag tag, int64_t integer = 0, double real = 0, double imaginary = 0) {
  Output output;
  output.tag = tag;
  output.integer = integer;
  output.real = real;
  output.imaginary = imaginary;
  return output;
}

Outcome Everything() {
  Outcome outcome;
  Output list = Plain(OutputTag::kList);
  list.list = {Tensor({2}, 8), Plain(OutputTag::kUndefined), Alias(3)};
  outcome.outputs = {Tensor({}, 4),
                     Alias(0),
                     Plain(OutputTag::kUndefined),
                     list,
                     Plain(OutputTag::kInt, -5),
                     Plain(OutputTag::kDouble, 0, 2.5),
                     Plain(OutputTag::kBool, 1),
                     Plain(OutputTag::kComplex, 0, 1.5, -0.5),
                     Plain(OutputTag::kNone),
                     Plain(OutputTag::kDType, static_cast<int64_t>(DType::kBFloat16))};
  outcome.resized = {{2, Tensor({8}, 0).geometry, 64}};
  return outcome;
}

std::vector<std::byte> Encode(const Outcome& outcome) {
  ByteWriter out;
  EncodeOutcome(out, outcome);
  return {out.bytes().begin(), out.bytes().end()};
}

bool Decodes(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Outcome outcome;
  return DecodeOutcome(in, outcome);
}

// An outcome of one output, from its bytes.
template <class... Values>
bool OutputDecodes(OutputTag tag, Values... values) {
  return Decodes(Join(Bytes(uint16_t{1}, tag), Bytes(values...), Bytes(uint16_t{0})));
}

TEST(Outcome, RoundTrips) {
  const auto bytes = Encode(Everything());
  ByteReader in(bytes);
  Outcome back;
  ASSERT_TRUE(DecodeOutcome(in, back));
  EXPECT_TRUE(in.done());
  EXPECT_EQ(back, Everything());
}

TEST(Outcome, CountsHandlesOfNewStoragesOnly) {
  EXPECT_EQ(OutputHandles(Everything()), 2u);
  EXPECT_EQ(OutputHandles(Outcome{}), 0u);
}

TEST(Outcome, RefusesEveryTruncation) {
  const auto bytes = Encode(Everything());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(Decodes(std::span(bytes).first(size))) << size;
}

TEST(Outcome, RefusesUnknownTags) {
  EXPECT_TRUE(OutputDecodes(OutputTag::kNone));
  EXPECT_FALSE(OutputDecodes(static_cast<OutputTag>(kOutputTagCount)));
  EXPECT_FALSE(OutputDecodes(static_cast<OutputTag>(255)));
}

TEST(Outcome, RefusesStorageThatItsTensorDoesNotFit) {
  const auto tensor = [](uint64_t bytes) {
    return OutputDecodes(OutputTag::kTensor, uint8_t{7}, uint8_t{0}, uint8_t{0}, uint8_t{1}, int64_t{0}, int64_t{4},
                         int64_t{1}, bytes);
  };
  EXPECT_TRUE(tensor(16));
  EXPECT_FALSE(tensor(15));
  Outcome outcome;
  outcome.resized = {{0, Tensor({8}, 0).geometry, 31}};
  EXPECT_FALSE(Decodes(Encode(outcome)));
}

TEST(Outcome, RefusesListsOfAnythingButTensors) {
  EXPECT_TRUE(OutputDecodes(OutputTag::kList, uint32_t{1}, OutputTag::kUndefined));
  EXPECT_FALSE(OutputDecodes(OutputTag::kList, uint32_t{1}, OutputTag::kNone));
  EXPECT_FALSE(OutputDecodes(OutputTag::kList, uint32_t{1}, OutputTag::kInt, int64_t{1}));
  EXPECT_FALSE(OutputDecodes(OutputTag::kList, uint32_t{1}, OutputTag::kList, uint32_t{0})) << "a list in a list";
}

TEST(Outcome, RefusesCountsThatTheBytesCannotHold) {
  EXPECT_FALSE(OutputDecodes(OutputTag::kList, uint32_t{3}));
  EXPECT_FALSE(OutputDecodes(OutputTag::kList, kMaxListLength + 1));
  EXPECT_FALSE(Decodes(Bytes(uint16_t{0xffff}, uint16_t{0})));
  EXPECT_FALSE(Decodes(Bytes(uint16_t{0}, uint16_t{0xffff})));
}

TEST(Outcome, RefusesAnUnknownDType) {
  EXPECT_TRUE(OutputDecodes(OutputTag::kDType, uint8_t{kDTypeCount - 1}));
  EXPECT_FALSE(OutputDecodes(OutputTag::kDType, kDTypeCount));
}

}  // namespace
}  // namespace flagos
