// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "proto/wire/definitions.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

std::vector<std::byte> Encode(const OperatorDefinition& definition) {
  ByteWriter out;
  EncodeOperatorDefinition(out, definition);
  return {out.bytes().begin(), out.bytes().end()};
}

bool Decodes(const OperatorDefinition& definition) { return DecodeOperatorDefinition(Encode(definition)).ok(); }

const OperatorDefinition kAdd = {"aten::add", "out", 4, {ReturnKind::kMutatedArgument, ReturnKind::kValue}};

TEST(OperatorDefinition, RoundTrips) {
  const auto back = DecodeOperatorDefinition(Encode(kAdd));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().name, kAdd.name);
  EXPECT_EQ(back.value().overload, kAdd.overload);
  EXPECT_EQ(back.value().arguments, kAdd.arguments);
  EXPECT_EQ(back.value().returns, kAdd.returns);
}

TEST(OperatorDefinition, MayBePaddedToEightBytes) {
  auto bytes = Encode(kAdd);
  bytes.resize(bytes.size() + 7);
  EXPECT_TRUE(DecodeOperatorDefinition(bytes).ok());
  bytes.resize(bytes.size() + 1);
  EXPECT_FALSE(DecodeOperatorDefinition(bytes).ok());
}

TEST(OperatorDefinition, MayNameALibrary) {
  OperatorDefinition definition = kAdd;
  for (const char* const library : {"native", "a", "a-1", "seven77"}) {
    definition.library = library;
    auto bytes = Encode(definition);
    for (size_t padding = 0; padding < 8; ++padding, bytes.push_back(std::byte{0})) {
      const auto back = DecodeOperatorDefinition(bytes);
      ASSERT_TRUE(back.ok()) << library << ", padded by " << padding;
      EXPECT_EQ(back.value().library, library);
    }
    EXPECT_FALSE(DecodeOperatorDefinition(bytes).ok());
  }
  for (const size_t padding : {0, 4, 7}) {
    auto bytes = Encode(kAdd);
    bytes.resize(bytes.size() + padding);
    EXPECT_EQ(DecodeOperatorDefinition(bytes).value().library, "");
  }
}

TEST(OperatorDefinition, RefusesLibrariesThatCouldNotBeOne) {
  for (const std::string& library :
       {std::string("../a"), std::string("a b"), std::string("a\x1b"), std::string("a\0", 2), std::string(65, 'a')}) {
    OperatorDefinition definition = kAdd;
    definition.library = library;
    EXPECT_FALSE(Decodes(definition)) << library;
  }
  OperatorDefinition definition = kAdd;
  definition.library = "library";
  const auto bytes = Encode(definition);
  for (size_t cut = 1; cut < 8; ++cut) {
    EXPECT_FALSE(DecodeOperatorDefinition(std::span(bytes).first(bytes.size() - cut)).ok()) << cut;
  }
}

TEST(OperatorDefinition, RefusesEveryTruncation) {
  const auto bytes = Encode(kAdd);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto back = DecodeOperatorDefinition(std::span(bytes).first(size));
    ASSERT_FALSE(back.ok()) << size;
    EXPECT_EQ(back.error().code, ErrorCode::kMalformed);
  }
}

TEST(OperatorDefinition, RefusesNamesThatCouldNotBeOne) {
  EXPECT_TRUE(Decodes({std::string(256, 'a'), "", 0, {}}));
  EXPECT_FALSE(Decodes({"", "Tensor", 0, {}}));
  EXPECT_FALSE(Decodes({std::string(257, 'a'), "", 0, {}}));
  EXPECT_FALSE(Decodes({"a", std::string(257, 'a'), 0, {}}));
  EXPECT_FALSE(Decodes({std::string("aten::\0add", 10), "", 0, {}})) << "would end the name in the breadcrumb's table";
  EXPECT_FALSE(Decodes({"aten::add\x1b[2J", "", 0, {}})) << "would steer the terminal that shows it";
  EXPECT_FALSE(Decodes({"aten::add", "Ten sor", 0, {}}));
}

TEST(OperatorDefinition, RefusesReturnsOfAnUnknownKindOrNumber) {
  EXPECT_FALSE(Decodes({"aten::add", "", 0, {static_cast<ReturnKind>(kReturnKindCount)}}));
  const auto bytes = testing::Bytes(uint32_t{1}, 'a', uint32_t{0}, uint16_t{0}, uint16_t{0xffff}, uint8_t{0});
  EXPECT_FALSE(DecodeOperatorDefinition(bytes).ok());
}

TEST(OperatorList, RoundTrips) {
  const std::vector<std::string> names = {"aten::add.Tensor", "aten::relu", ""};
  ByteWriter out;
  EncodeOperatorList(out, names);
  const auto back = DecodeOperatorList(out.bytes());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value(), names);
  for (size_t size = 0; size < out.size(); ++size)
    EXPECT_FALSE(DecodeOperatorList(out.bytes().first(size)).ok()) << size;
}

TEST(OperatorList, RefusesACountThatCannotBe) {
  std::vector<std::byte> bytes = testing::Bytes(uint32_t{(1u << 14) + 1});
  bytes.resize(bytes.size() + 4 * ((1u << 14) + 1));
  EXPECT_FALSE(DecodeOperatorList(bytes).ok());
}

}  // namespace
}  // namespace flagos
