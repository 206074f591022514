// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "proto/shm/layout.h"
#include "proto/wire/reply.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

std::vector<std::byte> Head(const Error& error, bool deferred, std::vector<Warning> warnings) {
  ByteWriter out;
  EncodeReplyHead(out, error, deferred, warnings);
  return {out.bytes().begin(), out.bytes().end()};
}

TEST(Reply, RoundTripsAResult) {
  const auto body = testing::Bytes(uint64_t{0x0123456789abcdef});
  const auto bytes =
      testing::Join(Head(Error::Ok(), false, {{WarningKind::kDeprecation, "old"}, {WarningKind::kUser, ""}}), body);
  const auto reply = DecodeReply(bytes);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_TRUE(reply.value().error.ok());
  EXPECT_FALSE(reply.value().deferred);
  EXPECT_EQ(reply.value().body, body);
  ASSERT_EQ(reply.value().warnings.size(), 2u);
  EXPECT_EQ(reply.value().warnings[0].kind, WarningKind::kDeprecation);
  EXPECT_EQ(reply.value().warnings[0].text, "old");
}

TEST(Reply, RoundTripsAnError) {
  const auto reply = DecodeReply(Head(MakeError(ErrorCode::kLinAlg, "the matrix is singular"), true, {}));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply.value().error.code, ErrorCode::kLinAlg);
  EXPECT_EQ(reply.value().error.message, "the matrix is singular");
  EXPECT_TRUE(reply.value().deferred);
  EXPECT_TRUE(reply.value().body.empty());
}

TEST(Reply, AnUnknownCodeIsAnInternalError) {
  const auto reply = DecodeReply(testing::Bytes(uint16_t{999}, uint8_t{0}, uint8_t{0}, uint32_t{1}, 'x'));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply.value().error.code, ErrorCode::kInternal);
  EXPECT_EQ(reply.value().error.message, "x");
}

TEST(Reply, AnUnknownKindOfWarningIsAUserWarning) {
  const auto reply = DecodeReply(testing::Bytes(uint16_t{0}, uint8_t{0}, uint8_t{1}, uint8_t{77}, uint32_t{1}, 'w'));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply.value().warnings.at(0).kind, WarningKind::kUser);
}

TEST(Reply, TheLargestHeadFitsASlot) {
  const std::vector<Warning> warnings(1000, Warning{WarningKind::kUser, std::string(100'000, 'w')});
  const auto bytes = Head(MakeError(ErrorCode::kRuntime, std::string(1'000'000, 'e')), false, warnings);
  EXPECT_LE(bytes.size(), kMaxReplyBytes);
  const auto reply = DecodeReply(bytes);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply.value().warnings.size(), 32u);
  EXPECT_EQ(reply.value().error.message.size(), 32768u);
}

TEST(Reply, TextIsCutBetweenCharacters) {
  std::string text(32767, 'e');
  text += "\u00e9";  // two bytes, of which only one would fit
  const auto reply = DecodeReply(Head(MakeError(ErrorCode::kRuntime, text), false, {}));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply.value().error.message, std::string(32767, 'e'));
}

TEST(Reply, RefusesTruncation) {
  const auto bytes = Head(MakeError(ErrorCode::kValue, "bad value"), false, {{WarningKind::kUser, "careful"}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto reply = DecodeReply(std::span(bytes).first(size));
    ASSERT_FALSE(reply.ok()) << size;
    EXPECT_EQ(reply.error().code, ErrorCode::kMalformed);
  }
}

TEST(Reply, RefusesATextThatIsTooLong) {
  auto bytes = testing::Bytes(uint16_t{1}, uint8_t{0}, uint8_t{0}, uint32_t{32769});
  bytes.resize(bytes.size() + 32769);
  EXPECT_FALSE(DecodeReply(bytes).ok());
}

}  // namespace
}  // namespace flagos
