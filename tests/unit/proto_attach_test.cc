// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "proto/shm/layout.h"
#include "proto/wire/attach.h"
#include "proto/wire/records.h"

namespace flagos {
namespace {

// The error for a request that `change` has spoilt.
template <class Change>
ErrorCode Check(Change change) {
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  change(request);
  const auto terms = CheckAttachRequest(request);
  return terms.ok() ? ErrorCode::kOk : terms.error().code;
}

AttachReply Opened() {
  AttachReply reply = MakeAttachReply(Error::Ok());
  reply.version = kProtocolVersionMax;
  reply.features = kFeatures;
  reply.session = 7;
  reply.generation = 1;
  reply.device_count = 1;
  reply.ring_bytes = kMinRingBytes;
  reply.arena_bytes = kPage;
  reply.descriptors = kAttachFdCount;
  return reply;
}

template <class Change>
ErrorCode CheckReply(Change change) {
  AttachReply reply = Opened();
  change(reply);
  return CheckAttachReply(reply).code;
}

TEST(AttachRequest, IsAccepted) {
  for (const AttachKind kind : {AttachKind::kDevices, AttachKind::kOpen}) {
    const auto terms = CheckAttachRequest(MakeAttachRequest(kind));
    ASSERT_TRUE(terms.ok()) << terms.error().message;
    EXPECT_EQ(terms.value().version, kProtocolVersionMax);
    EXPECT_EQ(terms.value().features, kFeatures);
  }
}

TEST(AttachRequest, RefusesWhatIsNoRequest) {
  EXPECT_EQ(Check([](auto& r) { r.magic[0] = 'P'; }), ErrorCode::kMalformed);
  EXPECT_EQ(Check([](auto& r) { r.size = 255; }), ErrorCode::kMalformed);
  EXPECT_EQ(Check([](auto& r) { r.kind = 0; }), ErrorCode::kMalformed);
  EXPECT_EQ(Check([](auto& r) { r.kind = 3; }), ErrorCode::kMalformed);
  EXPECT_EQ(Check([](auto& r) { std::fill(std::begin(r.name), std::end(r.name), 'x'); }), ErrorCode::kMalformed);
  EXPECT_EQ(Check([](auto& r) { std::fill(std::begin(r.torch_version), std::end(r.torch_version), 'x'); }),
            ErrorCode::kMalformed);
}

TEST(AttachRequest, AgreesOnTheNewestCommonVersion) {
  EXPECT_EQ(Check([](auto& r) { r.version_max = kProtocolVersionMax + 9; }), ErrorCode::kOk);
  EXPECT_EQ(Check([](auto& r) { r.version_min = kProtocolVersionMax + 1, r.version_max = kProtocolVersionMax + 2; }),
            ErrorCode::kVersion);
  EXPECT_EQ(Check([](auto& r) { r.version_min = r.version_max = 0; }), ErrorCode::kVersion);
  EXPECT_EQ(Check([](auto& r) { r.version_min = 9, r.version_max = 1; }), ErrorCode::kVersion) << "an empty range";
}

TEST(AttachRequest, AVersionErrorNamesBothRanges) {
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  request.version_min = 70;
  request.version_max = 75;
  const std::string text = CheckAttachRequest(request).error().message;
  EXPECT_NE(text.find("70 to 75"), std::string::npos) << text;
  EXPECT_NE(text.find("protocol 1"), std::string::npos) << text;
}

TEST(AttachRequest, UsesCommonFeaturesOnly) {
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  request.features = ~uint64_t{0};
  EXPECT_EQ(CheckAttachRequest(request).value().features, kFeatures);
  request.features = 0;
  EXPECT_EQ(CheckAttachRequest(request).value().features, 0u);
}

TEST(AttachReply, IsAccepted) {
  EXPECT_TRUE(CheckAttachReply(Opened()).ok()) << CheckAttachReply(Opened()).message;
  EXPECT_EQ(CheckReply([](auto& r) { r.session = 0, r.descriptors = 0, r.ring_bytes = 0; }), ErrorCode::kOk)
      << "the answer to kDevices";
}

TEST(AttachReply, TellsTheDaemonsError) {
  const AttachReply reply = MakeAttachReply(MakeError(ErrorCode::kPermission, "no token"));
  const Error error = CheckAttachReply(reply);
  EXPECT_EQ(error.code, ErrorCode::kPermission);
  EXPECT_EQ(error.message, "no token");
  EXPECT_EQ(CheckReply([](auto& r) { r.status = 999; }), ErrorCode::kInternal) << "a code of a later version";
}

TEST(AttachReply, RefusesWhatIsNoReply) {
  EXPECT_EQ(CheckReply([](auto& r) { r.magic[7] = '2'; }), ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { r.size = 0; }), ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { std::fill(std::begin(r.message), std::end(r.message), 'x'); }),
            ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { std::fill(std::begin(r.vendor), std::end(r.vendor), 'x'); }),
            ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { r.device_count = kMaxDevices + 1; }), ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { r.version = kProtocolVersionMax + 1; }), ErrorCode::kVersion);
  EXPECT_EQ(CheckReply([](auto& r) { r.version = 0; }), ErrorCode::kVersion);
}

TEST(AttachReply, RefusesASessionThatCannotBe) {
  EXPECT_EQ(CheckReply([](auto& r) { r.descriptors = 3; }), ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { r.device_count = 0; }), ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { r.ring_bytes = kMinRingBytes + 8; }), ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { r.ring_bytes = kMinRingBytes / 2; }), ErrorCode::kMalformed);
  EXPECT_EQ(CheckReply([](auto& r) { r.ring_bytes = kMaxRingBytes * 2; }), ErrorCode::kMalformed);
}

TEST(AttachText, IsCutBetweenCharacters) {
  char text[5];
  CopyText(text, "abcdef");
  EXPECT_EQ(ReadText(text), "abcd");
  CopyText(text, "abc\u00e9");
  EXPECT_EQ(ReadText(text), "abc");
  CopyText(text, "");
  EXPECT_EQ(ReadText(text), "");
  std::fill(std::begin(text), std::end(text), 'x');
  EXPECT_EQ(ReadText(text), "xxxxx") << "never reads beyond the field";
}

}  // namespace
}  // namespace flagos
