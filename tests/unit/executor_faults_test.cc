// SPDX-License-Identifier: Apache-2.0
// What happens when calls fail, late or at once, and when a vendor does not keep its side of the interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/executor_session.h"
#include "tests/support/faulty/faulty_vendor.h"

namespace flagos::testing {
namespace {

using enum RecordKind;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class ExecutorFaultsTest : public ::testing::Test {
 protected:
  ExecutorFaultsTest() : session_(std::make_unique<FaultyVendor>()) {}
  SessionClient& client() { return session_.client(); }

  // The number of a signature of `test::name`, defined at its first use.
  uint32_t signature(const std::string& name) {
    const auto [found, fresh] = numbers_.try_emplace(name, static_cast<uint32_t>(numbers_.size() + 1));
    if (fresh) {
      client().define_operator(found->second, "test::" + name, "", {});
      Argument number;
      number.tag = ArgTag::kDouble;
      client().define_signature(found->second, {.op = found->second, .arguments = {number}, .expected = {}});
    }
    return found->second;
  }
  uint64_t call(const std::string& name, double number = 0, uint8_t flags = 0) {
    return client().send({.kind = kCall, .subject = signature(name), .flags = flags},
                         SessionClient::CallPayload({}, {}, Pack(number)));
  }
  SessionClient::Pending ask(const std::string& name, double number = 0) {
    return client().ask({.kind = kCall, .subject = signature(name)}, SessionClient::CallPayload({}, {}, Pack(number)));
  }
  Reply answer(const SessionClient::Pending& pending) {
    auto reply = client().answer(pending);
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(Reply{});
  }
  Reply synchronise() { return answer(client().ask({.kind = kFence})); }

  ExecutorSession session_;

 private:
  std::map<std::string, uint32_t> numbers_;
};

TEST_F(ExecutorFaultsTest, TellsAnAsynchronousFailureOnceWithItsPlace) {
  const uint64_t sequence = call("fail");
  call("fail");
  const Reply told = synchronise();
  EXPECT_TRUE(told.deferred);
  EXPECT_EQ(told.error.code, ErrorCode::kDevice);
  EXPECT_THAT(told.error.message, HasSubstr("device-side assert"));
  EXPECT_THAT(told.error.message, HasSubstr("test::fail, record " + std::to_string(sequence) + " "));
  EXPECT_TRUE(synchronise().error.ok());
  EXPECT_EQ(client().page().deferred_error.load(), 0u);
}

TEST_F(ExecutorFaultsTest, EndsWithItsDeviceAndNamesTheLatestCalls) {
  call("warn");
  call("warn");
  const auto lost = ask("lose");
  const auto later = client().ask({.kind = kFence});
  EXPECT_EQ(answer(lost).error.message, session_.cause().message);
  EXPECT_EQ(answer(later).error.code, ErrorCode::kDeviceLost);
  EXPECT_EQ(session_.cause().code, ErrorCode::kDevice);
  EXPECT_THAT(session_.cause().message, AllOf(HasSubstr("device-side assert"),
                                              EndsWith("; the latest calls, newest first: test::lose, test::warn")));
  EXPECT_EQ(client().page().end_cause, session_.cause().message);
}

TEST_F(ExecutorFaultsTest, ShowsThatAFailureWaits) {
  const uint64_t sequence = call("fail", 0, kFlagNotify);
  ASSERT_TRUE(client().wait_complete(0, sequence));
  EXPECT_EQ(client().page().deferred_error.load(), sequence);
}

TEST_F(ExecutorFaultsTest, ASyncRecordThatTellsAFailureIsNotCarriedOut) {
  call("fail");
  const auto told = client().request({.kind = kAllocate, .subject = 1, .flags = kFlagNotify}, Pack(uint64_t{512}));
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->deferred);
  const auto stats = client().request({.kind = kMemoryStats});
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(Unpack<MemoryStats>(stats->body).allocated_bytes, 0);
}

TEST_F(ExecutorFaultsTest, NotifiesEvenWhereItTellsAFailure) {
  call("fail");
  const auto pending = client().ask({.kind = kFence, .flags = kFlagNotify});
  EXPECT_TRUE(answer(pending).deferred);
  EXPECT_TRUE(client().wait_complete(0, pending.sequence));
}

TEST_F(ExecutorFaultsTest, AFenceTellsTheFailureThatItWaitedFor) {
  call("fail_later", 20);
  const Reply told = synchronise();
  EXPECT_TRUE(told.deferred);
  EXPECT_THAT(told.error.message, HasSubstr("test::fail_later"));
  EXPECT_TRUE(synchronise().error.ok());
}

TEST_F(ExecutorFaultsTest, ASynchronousFailureIsTheAnswer) {
  const Reply told = answer(ask("fail"));
  EXPECT_FALSE(told.deferred);
  EXPECT_EQ(told.error.message, "device-side assert");
  EXPECT_TRUE(synchronise().error.ok());
}

TEST_F(ExecutorFaultsTest, ADroppedResponderAnswers) {
  const Reply told = answer(ask("drop"));
  EXPECT_EQ(told.error.code, ErrorCode::kInternal);
  EXPECT_THAT(told.error.message, HasSubstr("without an answer"));
}

TEST_F(ExecutorFaultsTest, OnlyTheFirstAnswerCounts) {
  EXPECT_TRUE(answer(ask("twice")).error.ok());
  EXPECT_TRUE(synchronise().error.ok());
}

TEST_F(ExecutorFaultsTest, AnswersComeFromOtherThreadsWhileTheDispatchGoesOn) {
  const auto slow = ask("slow", 30);
  EXPECT_TRUE(answer(ask("warn")).error.ok());  // answered while the first is under way
  EXPECT_TRUE(answer(slow).error.ok());
}

TEST_F(ExecutorFaultsTest, LargeAnswersArriveWholeAndTooLargeOnesSayso) {
  constexpr size_t kHead = 4;  // an ok reply without warnings
  const Reply large = answer(ask("large", kMaxReplyBytes - kHead));
  ASSERT_TRUE(large.error.ok());
  EXPECT_EQ(large.body, Bytes(kMaxReplyBytes - kHead, std::byte{7}));
  const Reply too_large = answer(ask("large", kMaxReplyBytes - kHead + 1));
  EXPECT_EQ(too_large.error.code, ErrorCode::kOutOfRange);
  EXPECT_THAT(too_large.error.message, HasSubstr("does not fit"));
}

TEST_F(ExecutorFaultsTest, WarningsComeWithTheNextAnswer) {
  call("warn");
  const Reply reply = answer(ask("warn"));
  ASSERT_EQ(reply.warnings.size(), 3u);
  EXPECT_EQ(reply.warnings[0].text, "asynchronous");
  EXPECT_EQ(reply.warnings[2].text, "synchronous");
  EXPECT_EQ(reply.warnings[2].kind, WarningKind::kDeprecation);
  EXPECT_TRUE(synchronise().warnings.empty());
}

TEST_F(ExecutorFaultsTest, AFloodOfWarningsIsBounded) {
  for (int i = 0; i < 1000; ++i) call("warn");
  EXPECT_LE(synchronise().warnings.size(), 32u);
}

TEST_F(ExecutorFaultsTest, EndingAnswersWhoeverWaits) {
  signature("warn");
  const auto held = ask("slow", 500);  // with the vendor
  const uint64_t stall = call("stall", 100);
  const auto queued = ask("warn");  // in the ring
  while (client().page().running_sequence.load() < stall) std::this_thread::yield();
  session_.end("maintenance at noon");
  for (const auto& pending : {queued, held}) {
    const Reply lost = answer(pending);
    EXPECT_EQ(lost.error.code, ErrorCode::kDeviceLost);
    EXPECT_THAT(lost.error.message, EndsWith("maintenance at noon"));
  }
  EXPECT_EQ(session_.cause().message, "maintenance at noon");
  EXPECT_STREQ(client().page().end_cause, "maintenance at noon");
}

TEST_F(ExecutorFaultsTest, ASlotWhoseAnswerIsDueCannotBeNamedAgain) {
  const auto held = ask("slow", 200);
  RecordHeader header{};
  header.kind = static_cast<uint16_t>(kFence);
  header.flags = kFlagSync;
  client().send_raw(header, Pack(ReplyTarget{held.slot, 0}));
  EXPECT_THAT(session_.cause().message, HasSubstr("still in use"));
  EXPECT_EQ(answer(held).error.code, ErrorCode::kDeviceLost);
}

TEST_F(ExecutorFaultsTest, EndingWakesWhoSleepsOnACompletionWord) {
  call("stall", 50);
  session_.end("enough");
  EXPECT_FALSE(client().wait_complete(0, 1'000'000));
}

}  // namespace
}  // namespace flagos::testing
