// SPDX-License-Identifier: Apache-2.0
// What a hostile or damaged client writes: the session ends with a cause, and nothing else happens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <random>
#include <thread>

#include "tests/support/executor_session.h"
#include "vendors/null/vendor.h"

namespace flagos::testing {
namespace {

using enum RecordKind;
using ::testing::HasSubstr;

constexpr uint32_t kSignature = 1, kPredicted = 2;

// A session in which signature kSignature takes one tensor and one double and kPredicted returns one tensor.
class Victim {
 public:
  Victim() : session(std::make_unique<null::NullVendor>()) {
    session.client().define_operator(0, "aten::add", "Tensor", {ReturnKind::kTensor}, 2);
    Signature signature{.op = 0, .arguments = {TensorArgument({2}), Argument{}}, .expected = {}};
    signature.arguments[1].tag = ArgTag::kDouble;
    session.client().define_signature(kSignature, signature);
    signature.predicted = true;
    Output& output = signature.expected.outputs.emplace_back();
    output.tag = OutputTag::kTensor;
    output.geometry = signature.arguments[0].tensor;
    output.storage_bytes = 8;
    session.client().define_signature(kPredicted, signature);
  }
  ExecutorSession session;
};

RecordHeader Header(RecordKind kind, uint32_t subject = 0, uint8_t flags = 0) {
  RecordHeader header{};
  header.kind = static_cast<uint16_t>(kind);
  header.subject = subject;
  header.flags = flags;
  return header;
}

struct Malformed {
  const char* name;
  RecordHeader header;
  Bytes payload;
  const char* cause;  // part of it
};

Bytes Join(const Bytes& first, const Bytes& second) {
  Bytes all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

Bytes Encoded(const Signature& signature) {
  ByteWriter out;
  EncodeSignature(out, signature);
  out.align(8);
  return {out.bytes().begin(), out.bytes().end()};
}

RecordHeader With(RecordHeader header, const std::function<void(RecordHeader&)>& change) {
  change(header);
  return header;
}

std::vector<Malformed> Cases() {
  const Bytes call = SessionClient::CallPayload(std::array{1u}, std::array{2u}, Pack(1.0));
  const auto call_of = [](uint16_t inputs, uint16_t outputs, uint32_t free_bytes, size_t bytes) {
    return Join(Pack(CallHeader{inputs, outputs, free_bytes}), Bytes(bytes));
  };
  Signature far{.op = 0, .arguments = {TensorArgument({2}, DType::kFloat32, 3)}, .expected = {}};
  Signature alias{.op = 0, .arguments = {TensorArgument({2})}, .predicted = true, .expected = {}};
  alias.expected.outputs.push_back({.tag = OutputTag::kAlias,
                                    .geometry = far.arguments[0].tensor,
                                    .storage_bytes = 8,
                                    .alias = 1,
                                    .list = {},
                                    .sparse = {}});
  alias.expected.outputs[0].geometry.device = 0;
  Signature resized{.op = 0, .arguments = {TensorArgument({2})}, .predicted = true, .expected = {}};
  resized.expected.resized.push_back({.input = 1, .geometry = resized.arguments[0].tensor, .storage_bytes = 8});
  return {
      {"UnknownKind", Header(static_cast<RecordKind>(4000)), {}, "kind is unknown"},
      {"KindZero", Header(kInvalid), {}, "kind is unknown"},
      {"KindInAGap", Header(static_cast<RecordKind>(15)), {}, "kind is unknown"},
      {"UnknownFlag", Header(kFree, 1, 0x80), {}, "flags"},
      {"ReservedSet",
       With(Header(kFree, 1), [](RecordHeader& h) { h.reserved = 1; }),
       {},
       "reserved field of its header"},
      {"ForeignDevice", With(Header(kFree, 1), [](RecordHeader& h) { h.device = 1; }), {}, "device is none"},
      {"DeviceBeyondAll", With(Header(kMemoryStats, 0, kFlagSync), [](RecordHeader& h) { h.device = 255; }),
       Pack(ReplyTarget{}), "device is none"},
      {"UndefinedStream", With(Header(kFree, 1), [](RecordHeader& h) { h.stream = 64; }), {}, "stream does not exist"},
      {"DefaultStreamOfNoDevice",
       With(Header(kFree, 1), [](RecordHeader& h) { h.stream = 1; }),
       {},
       "stream does not exist"},
      {"StreamBeyondAll",
       With(Header(kFence, 0, kFlagNotify), [](RecordHeader& h) { h.stream = 5000; }),
       {},
       "stream does not exist"},
      {"AllStreamsOfACall", With(Header(kCall, kSignature), [](RecordHeader& h) { h.stream = kAllStreams; }), call,
       "stream does not exist"},
      {"NotifyWithoutAStream",
       With(Header(kDropSignature, 1, kFlagNotify), [](RecordHeader& h) { h.stream = 700; }),
       {},
       "stream does not exist"},
      {"CreatesADefaultStream", With(Header(kCreateStream), [](RecordHeader& h) { h.stream = 3; }), Pack(uint64_t{0}),
       "creates a stream"},
      {"CreatesAStreamBeyondAll", With(Header(kCreateStream), [](RecordHeader& h) { h.stream = kMaxStreams; }),
       Pack(uint64_t{0}), "creates a stream"},
      {"SyncWithoutATarget", Header(kFence, 0, kFlagSync), {}, "does not say where"},
      {"SlotBeyondAll", Header(kFence, 0, kFlagSync), Pack(ReplyTarget{kReplySlotCount, 0}), "no reply slot"},
      {"TargetReservedSet", Header(kFence, 0, kFlagSync), Pack(ReplyTarget{0, 1}),
       "reserved field of its reply target"},
      {"AsksWithoutSync", Header(kListOperators), {}, "without a place"},
      {"SubjectBeyondAll", Header(kFree, kMaxHandle + 1), {}, "out of bounds"},
      {"SubjectWhereNone", Header(kEmptyCache, 1), {}, "out of bounds"},
      {"OperatorBeyondAll", Header(kDefineOperator, kMaxOperators), Pack(uint64_t{0}), "out of bounds"},
      {"SignatureBeyondAll", Header(kDefineSignature, kMaxSignatures), Pack(uint64_t{0}), "out of bounds"},
      {"ContextBeyondAll", Header(kDefineContext, kMaxContexts), Pack(uint64_t{0}), "out of bounds"},
      {"EventBeyondAll", Header(kWaitEvent, kMaxEvents), {}, "out of bounds"},
      {"GeneratorBeyondAll", Header(kCreateGenerator, kMaxGenerators), {}, "out of bounds"},
      {"SecondEventBeyondAll", Header(kElapsedTime, 0, kFlagSync), Join(Pack(ReplyTarget{}), Pack(kMaxEvents, 0u)),
       "second event"},
      {"BodyMissing", Header(kAllocate, 1), {}, "size is not"},
      {"BodyTooLong", Header(kAllocate, 1), Pack(uint64_t{1}, uint64_t{1}), "size is not"},
      {"BodyWhereNone", Header(kFree, 1), Pack(uint64_t{1}), "size is not"},
      {"OperatorThatDoesNotDecode", Header(kDefineOperator, 1), Pack(0xffffffffu, 0u), "does not decode"},
      {"SignatureThatDoesNotDecode", Header(kDefineSignature, 5), Pack(0u, 0u, 0xffffffffu, 0u), "does not decode"},
      {"SignatureOfAForeignDevice", Header(kDefineSignature, 5), Encoded(far), "device that the session lacks"},
      {"SignatureThatAliasesNothing", Header(kDefineSignature, 5), Encoded(alias), "does not decode"},
      {"SignatureThatResizesNothing", Header(kDefineSignature, 5), Encoded(resized), "does not decode"},
      {"SignatureOfAnOperatorBeyondAll", Header(kDefineSignature, 5),
       Encoded({.op = kMaxOperators, .arguments = {}, .expected = {}}), "out of bounds"},
      {"CallWithoutAHeader", Header(kCall, kSignature), {}, "size is not"},
      {"CallOfNothing", Header(kCall, 77), call, "not defined"},
      {"CallCountsTooHigh", Header(kCall, kSignature), call_of(0xffff, 0xffff, 8, 16), "add up"},
      {"CallFreeBytesTooHigh", Header(kCall, kSignature), call_of(1, 1, 0xfffffff0u, 16), "add up"},
      {"CallWithOtherInputs", Header(kCall, kSignature), SessionClient::CallPayload(std::array{1u, 2u}, {}, Pack(1.0)),
       "not those of its signature"},
      {"CallWithOtherFreeBytes", Header(kCall, kSignature), SessionClient::CallPayload(std::array{1u}, std::array{2u}),
       "not those of its signature"},
      {"CallWithTooFewOutputs", Header(kCall, kPredicted), SessionClient::CallPayload(std::array{1u}, {}, Pack(1.0)),
       "outputs are not those"},
      {"CallWithTooManyOutputs", Header(kCall, kPredicted),
       SessionClient::CallPayload(std::array{1u}, std::array{2u, 3u}, Pack(1.0)), "outputs are not those"},
      {"CallWithAHandleBeyondAll", Header(kCall, kSignature),
       SessionClient::CallPayload(std::array{kMaxHandle + 1}, std::array{2u}, Pack(1.0)), "handle is out of bounds"},
  };
}

class MalformedRecordTest : public ::testing::TestWithParam<Malformed> {};
void PrintTo(const Malformed& test, std::ostream* out) { *out << test.name; }

TEST_P(MalformedRecordTest, EndsTheSessionWithACause) {
  Victim victim;
  const auto waiting = victim.session.client().ask({.kind = kFence});
  ASSERT_TRUE(victim.session.client().answer(waiting).has_value());
  victim.session.client().send_raw(GetParam().header, GetParam().payload);
  const executor::EndCause& cause = victim.session.cause();
  EXPECT_EQ(cause.code, ErrorCode::kMalformed);
  EXPECT_THAT(cause.message, HasSubstr(GetParam().cause));
  EXPECT_THAT(cause.message, HasSubstr("restart the job"));
  EXPECT_EQ(victim.session.client().page().end_cause, cause.message);
  EXPECT_EQ(victim.session.client().page().exit_code.load(), 1);
}

INSTANTIATE_TEST_SUITE_P(Each, MalformedRecordTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return std::string(test.param.name); });

// The same records with a valid reply target: the answer is the cause.
class MalformedSyncTest : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedSyncTest, IsAnsweredWithTheCause) {
  const Malformed& test = GetParam();
  Victim victim;
  RecordHeader header = test.header;
  header.flags |= kFlagSync;
  const uint64_t sequence = victim.session.client().send_raw(header, Join(Pack(ReplyTarget{5, 0}), test.payload));
  const auto reply = victim.session.client().answer({5, sequence});
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->error.code, ErrorCode::kMalformed);
  EXPECT_THAT(reply->error.message, HasSubstr(test.cause));
}

// Without those that are SYNC already, or wrong only because they are not.
std::vector<Malformed> CasesForSync() {
  std::vector<Malformed> cases = Cases();
  std::erase_if(cases, [](const Malformed& test) {
    return (test.header.flags & kFlagSync) != 0 || test.header.kind == static_cast<uint16_t>(kListOperators);
  });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Each, MalformedSyncTest, ::testing::ValuesIn(CasesForSync()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(MalformedRingTest, AHeadThatJumpsEndsTheSession) {
  Victim victim;
  SessionClient& client = victim.session.client();
  ASSERT_TRUE(client.request({.kind = kFence}).has_value());
  client.client_page().head.store(uint64_t{1} << 60);
  EXPECT_EQ(victim.session.cause().code, ErrorCode::kMalformed);
  EXPECT_THAT(victim.session.cause().message, HasSubstr("no record"));
}

// A second process scribbles over the ring while records are read: over everything, or, so that sessions live longer,
// over what follows a header.
class HostileRingTest : public ::testing::TestWithParam<int> {};

class Vandal {
 public:
  // Through a mapping of its own, as another process would.
  Vandal(const SessionMemory& memory, uint64_t seed)
      : mapping_(Must(Mapping::Map(memory.ring_fd.get(), Access::kReadWrite, RingRegionBytes(memory.ring_bytes)))),
        thread_([this, seed, words = memory.ring_bytes / 8] { scribble(seed, words); }) {}
  ~Vandal() {
    stop_.store(true);
    thread_.join();
  }

 private:
  void scribble(uint64_t seed, uint64_t words) {
    std::mt19937_64 random(seed);
    auto* const ring = reinterpret_cast<uint64_t*>(mapping_.data() + kPage);
    while (!stop_.load(std::memory_order_relaxed)) {
      uint64_t at = random() % words;
      if (seed % 2 == 0) at = at / kRecordWords * kRecordWords + 2 + random() % (kRecordWords - 2);
      const uint64_t value = random() % 4 == 0 ? random() : random() % 96;
      __atomic_store_n(ring + at % words, value, __ATOMIC_RELAXED);
      if (seed % 3 == 0) std::this_thread::yield();
    }
  }

  static constexpr uint64_t kRecordWords = 6;  // of the calls below

  const Mapping mapping_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST_P(HostileRingTest, SurvivesRewriting) {
  uint64_t records = 0;
  for (int round = 0; round < 40; ++round) {
    Victim victim;
    SessionClient& client = victim.session.client();
    ASSERT_TRUE(client.request({.kind = kFence})->error.ok());
    const Vandal vandal(victim.session.memory(), static_cast<uint64_t>(GetParam() * 1000 + round));
    const Bytes call = SessionClient::CallPayload(std::array{1u}, std::array{2u}, Pack(1.0));
    for (int i = 0; i < 2000 && client.page().state.load() == static_cast<uint64_t>(ExecutorState::kRunning); ++i) {
      const uint64_t sequence = client.send({.kind = kCall, .subject = kSignature}, call);
      if (sequence == 0) break;
    }
    victim.session.end("the test is over");
    const ErrorCode code = victim.session.cause().code;
    EXPECT_TRUE(code == ErrorCode::kMalformed || code == ErrorCode::kOk);
    records += client.page().running_sequence.load();
  }
  EXPECT_GT(records, 40u * 4) << "no session came beyond its definitions";
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileRingTest, ::testing::Range(0, 4));

}  // namespace
}  // namespace flagos::testing
