// SPDX-License-Identifier: Apache-2.0
// What an honest client may do, against the null vendor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "proto/socket/descriptors.h"
#include "proto/wire/kernels.h"
#include "tests/support/executor_session.h"
#include "vendors/null/vendor.h"

namespace flagos::testing {
namespace {

using enum RecordKind;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint32_t kAdd = 1, kItem = 2;  // operators
constexpr uint32_t kAddSignature = 3, kItemSignature = 4;
constexpr uint32_t kA = 1, kB = 2, kC = 3;  // handles

class ExecutorSessionTest : public ::testing::Test {
 protected:
  ExecutorSessionTest()
      : session_(std::make_unique<null::NullVendor>(), {.devices = {}, .values = {{"devices", "2"}}}) {}

  SessionClient& client() { return session_.client(); }

  void define_calls() {
    client().define_operator(kAdd, "aten::add", "Tensor", {ReturnKind::kTensor}, 2);
    Signature add{.op = kAdd, .arguments = {TensorArgument({4, 1}), TensorArgument({3})}, .expected = {}};
    client().define_signature(kAddSignature, add);
    client().define_operator(kItem, "aten::_local_scalar_dense", "", {ReturnKind::kValue});
    client().define_signature(kItemSignature, {.op = kItem, .arguments = {TensorArgument({})}, .expected = {}});
    for (const uint32_t handle : {kA, kB}) client().send({.kind = kAllocate, .subject = handle}, Pack(uint64_t{64}));
  }
  Reply must_answer(const SessionClient::Target& target, const Bytes& payload = {}) {
    auto reply = client().request(target, payload);
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(Reply{});
  }

  ExecutorSession session_;
};

TEST_F(ExecutorSessionTest, AnswersAFirstCallWithItsOutcome) {
  define_calls();
  const Reply reply = must_answer({.kind = kCall, .subject = kAddSignature},
                                  SessionClient::CallPayload(std::array{kA, kB}, std::array{kC}));
  ASSERT_TRUE(reply.error.ok()) << reply.error.message;
  ByteReader in(reply.body);
  Outcome outcome;
  ASSERT_TRUE(DecodeOutcome(in, outcome));
  ASSERT_EQ(outcome.outputs.size(), 1u);
  EXPECT_EQ(outcome.outputs[0].tag, OutputTag::kTensor);
  EXPECT_EQ(outcome.outputs[0].geometry.sizes, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(outcome.outputs[0].storage_bytes, 48u);
}

TEST_F(ExecutorSessionTest, CarriesOutCallsInOrderAndNotifies) {
  define_calls();
  uint64_t fence = 0;
  for (int i = 0; i < 1000; ++i) {
    client().send({.kind = kCall, .subject = kAddSignature},
                  SessionClient::CallPayload(std::array{kA, kB}, std::array{kC}));
    fence = client().send({.kind = kFence, .flags = kFlagNotify});
  }
  ASSERT_TRUE(client().wait_complete(0, fence));
  EXPECT_EQ(client().page().calls.load(), 1000u);
  EXPECT_EQ(client().page().running_sequence.load(), fence);
}

TEST_F(ExecutorSessionTest, NotifiesOnACallItself) {
  define_calls();
  const uint64_t call = client().send({.kind = kCall, .subject = kAddSignature, .flags = kFlagNotify},
                                      SessionClient::CallPayload(std::array{kA, kB}, std::array{kC}));
  EXPECT_TRUE(client().wait_complete(0, call));
}

TEST_F(ExecutorSessionTest, FencesEveryStreamOfADevice) {
  const uint64_t fence = client().send({.kind = kFence, .stream = kAllStreams, .device = 1, .flags = kFlagNotify});
  EXPECT_TRUE(client().wait_complete(1, fence));
  EXPECT_TRUE(must_answer({.kind = kFence, .stream = kAllStreams, .device = 1}).error.ok());
}

TEST_F(ExecutorSessionTest, ListsAndKnowsOperators) {
  const Reply list = must_answer({.kind = kListOperators});
  const auto names = DecodeOperatorList(list.body);
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(names.value(), Contains("aten::add.Tensor"));
  const auto query = [&](std::string_view name) {
    ByteWriter out;
    out.put_string(name);
    out.align(8);
    return Unpack<uint8_t>(must_answer({.kind = kQueryOperator}, {out.bytes().begin(), out.bytes().end()}).body);
  };
  EXPECT_EQ(query("aten::relu"), 1);
  EXPECT_EQ(query("aten::no_such_thing"), 0);
}

TEST_F(ExecutorSessionTest, ReadsAValue) {
  define_calls();
  const Reply reply =
      must_answer({.kind = kCall, .subject = kItemSignature}, SessionClient::CallPayload(std::array{kA}, {}));
  ByteReader in(reply.body);
  Outcome outcome;
  ASSERT_TRUE(DecodeOutcome(in, outcome));
  ASSERT_EQ(outcome.outputs.size(), 1u);
  EXPECT_EQ(outcome.outputs[0].tag, OutputTag::kDouble);
}

TEST_F(ExecutorSessionTest, TellsMemory) {
  client().send({.kind = kAllocate, .subject = kA}, Pack(uint64_t{4096}));
  client().send({.kind = kAllocate, .subject = kB, .stream = 1, .device = 1}, Pack(uint64_t{100}));
  client().send({.kind = kFree, .subject = kA});
  client().send({.kind = kEmptyCache});
  const auto first = Unpack<MemoryStats>(must_answer({.kind = kMemoryStats}).body);
  EXPECT_EQ(first.allocated_bytes, 0);
  EXPECT_EQ(first.peak_allocated_bytes, 4096);
  EXPECT_EQ(Unpack<MemoryStats>(must_answer({.kind = kMemoryStats, .subject = 1}).body).peak_allocated_bytes, 4096);
  EXPECT_EQ(Unpack<MemoryStats>(must_answer({.kind = kMemoryStats}).body).peak_allocated_bytes, 0);
  const auto second = Unpack<MemoryStats>(must_answer({.kind = kMemoryStats, .device = 1}).body);
  EXPECT_EQ(second.allocated_bytes, 100);
  EXPECT_EQ(client().page().devices[1].allocated_bytes.load(), 100);
  EXPECT_EQ(client().page().devices[1].total_bytes.load(), second.total_bytes);
}

TEST_F(ExecutorSessionTest, KeepsStreamsAndEvents) {
  constexpr uint16_t kSide = 64;
  client().send({.kind = kCreateStream, .stream = kSide, .device = 1}, Pack(int32_t{-1}, uint32_t{0}));
  for (const uint32_t event : {5u, 6u}) {
    const uint64_t recorded =
        client().send({.kind = kRecordEvent, .subject = event, .stream = kSide, .device = 1, .flags = kFlagNotify},
                      Pack(uint32_t{1}, uint32_t{0}));
    ASSERT_TRUE(client().wait_complete(kSide, recorded));
  }
  client().send({.kind = kWaitEvent, .subject = 5});
  const Reply elapsed = must_answer({.kind = kElapsedTime, .subject = 5}, Pack(uint32_t{6}, uint32_t{0}));
  ASSERT_TRUE(elapsed.error.ok()) << elapsed.error.message;
  EXPECT_GE(Unpack<double>(elapsed.body), 0.0);
  client().send({.kind = kDestroyEvent, .subject = 6});
  EXPECT_EQ(must_answer({.kind = kElapsedTime, .subject = 5}, Pack(uint32_t{6}, uint32_t{0})).error.code,
            ErrorCode::kRuntime);
  EXPECT_TRUE(must_answer({.kind = kRecordEvent, .subject = 5}, Pack(uint32_t{0}, uint32_t{0})).error.ok());
}

TEST_F(ExecutorSessionTest, KeepsGenerators) {
  constexpr uint32_t kOwn = 64;
  client().send({.kind = kCreateGenerator, .subject = kOwn});
  client().send({.kind = kSeedGenerator, .subject = kOwn}, Pack(uint64_t{42}));
  const Reply state = must_answer({.kind = kGetGeneratorState, .subject = kOwn});
  EXPECT_EQ(Unpack<uint64_t>(state.body), 42u);
  EXPECT_TRUE(must_answer({.kind = kSetGeneratorState, .subject = 0}, state.body).error.ok());
  EXPECT_EQ(must_answer({.kind = kGetGeneratorState, .subject = 0}).body, state.body);
  EXPECT_EQ(must_answer({.kind = kSetGeneratorState, .subject = 0}, Pack(uint64_t{1})).error.code, ErrorCode::kRuntime);
  client().send({.kind = kDestroyGenerator, .subject = kOwn});
  EXPECT_EQ(must_answer({.kind = kGetGeneratorState, .subject = kOwn}).error.code, ErrorCode::kNotFound);
}

// FLAGOS_LAUNCH_BLOCKING makes every record SYNC, whatever its kind.
TEST_F(ExecutorSessionTest, AnswersEveryKindThatIsSync) {
  define_calls();
  ByteWriter operator_bytes, signature_bytes;
  EncodeOperatorDefinition(operator_bytes, {"aten::mul", "Tensor", 2, {ReturnKind::kTensor}});
  EncodeSignature(signature_bytes, {.op = kItem, .arguments = {TensorArgument({})}, .expected = {}});
  const auto bytes = [](const ByteWriter& out) { return Bytes(out.bytes().begin(), out.bytes().end()); };
  const std::vector<std::pair<SessionClient::Target, Bytes>> records = {
      {{.kind = kDefineOperator, .subject = 9}, bytes(operator_bytes)},
      {{.kind = kDefineContext, .subject = 1}, Pack(ContextState{})},
      {{.kind = kDefineSignature, .subject = 9}, bytes(signature_bytes)},
      {{.kind = kCall, .subject = 9}, SessionClient::CallPayload(std::array{kA}, {})},
      {{.kind = kDropSignature, .subject = 9}, {}},
      {{.kind = kAllocate, .subject = 9}, Pack(uint64_t{1})},
      {{.kind = kFree, .subject = 9}, {}},
      {{.kind = kEmptyCache}, {}},
      {{.kind = kCreateStream, .stream = 70}, Pack(uint64_t{0})},
      {{.kind = kFence, .stream = 70}, {}},
      {{.kind = kRecordEvent, .subject = 1}, Pack(uint64_t{0})},
      {{.kind = kWaitEvent, .subject = 1}, {}},
      {{.kind = kDestroyEvent, .subject = 1}, {}},
      {{.kind = kCreateGenerator, .subject = 100}, {}},
      {{.kind = kSeedGenerator, .subject = 100}, Pack(uint64_t{1})},
      {{.kind = kDestroyGenerator, .subject = 100}, {}},
  };
  for (const auto& [target, payload] : records) {
    SessionClient::Target with = target;
    with.flags = kFlagNotify;
    const auto pending = client().ask(with, payload);
    const auto reply = client().answer(pending);
    ASSERT_TRUE(reply.has_value()) << RecordKindName(target.kind);
    EXPECT_TRUE(reply->error.ok()) << RecordKindName(target.kind) << ": " << reply->error.message;
    EXPECT_TRUE(client().wait_complete(target.stream, pending.sequence)) << RecordKindName(target.kind);
  }
  EXPECT_TRUE(must_answer({.kind = kClose}).error.ok());
}

TEST_F(ExecutorSessionTest, RefusedDefinitionsFailTheirCallsOnly) {
  client().define_operator(1, "aten::not_here", "", {ReturnKind::kTensor});
  const Reply told = must_answer({.kind = kFence});
  EXPECT_TRUE(told.deferred);
  EXPECT_EQ(told.error.code, ErrorCode::kNotImplemented);
  EXPECT_THAT(told.error.message, HasSubstr("aten::not_here"));

  client().define_signature(1, {.op = 1, .arguments = {TensorArgument({2})}, .expected = {}});
  EXPECT_EQ(must_answer({.kind = kFence}).error.code, ErrorCode::kNotFound);
  EXPECT_EQ(
      must_answer({.kind = kCall, .subject = 1}, SessionClient::CallPayload(std::array{kA}, std::array{kC})).error.code,
      ErrorCode::kNotFound);
  EXPECT_TRUE(must_answer({.kind = kFence}).error.ok());
}

TEST_F(ExecutorSessionTest, TellsOfKernelLibraries) {
  define_calls();
  const auto libraries = DecodeKernelLibraries(must_answer({.kind = kListKernels}).body);
  ASSERT_TRUE(libraries.ok());
  EXPECT_TRUE(libraries.value().empty());
  const auto figures = DecodeKernelFigures(must_answer({.kind = kKernelFigures}).body);
  ASSERT_TRUE(figures.ok());
  EXPECT_TRUE(figures.value().empty());
  const auto kernel_of = [&](uint32_t signature) {
    return ByteReader(must_answer({.kind = kQueryKernel, .subject = signature}).body).get_string();
  };
  EXPECT_EQ(kernel_of(kAddSignature), "native");
  EXPECT_EQ(kernel_of(77), "");
}

// Whoever asks what ran where is not told of a failure that the program has still to hear.
TEST_F(ExecutorSessionTest, LookingOnIsNoSynchronisingPoint) {
  ByteWriter definition;
  EncodeOperatorDefinition(definition, {"aten::mul", "Tensor", 2, {ReturnKind::kTensor}, "fast"});
  client().send({.kind = kDefineOperator, .subject = 9}, Bytes(definition.bytes().begin(), definition.bytes().end()));
  for (const RecordKind kind : {kListKernels, kQueryKernel, kKernelFigures}) {
    const Reply reply = must_answer({.kind = kind});
    EXPECT_TRUE(reply.error.ok()) << reply.error.message;
  }
  const Reply told = must_answer({.kind = kFence});
  EXPECT_TRUE(told.deferred);
  EXPECT_THAT(told.error.message, HasSubstr("aten::mul.Tensor: there is no kernel library 'fast'"));
}

TEST_F(ExecutorSessionTest, NamesTheLastOperator) {
  define_calls();
  client().send({.kind = kCall, .subject = kAddSignature, .flags = kFlagNotify},
                SessionClient::CallPayload(std::array{kA, kB}, std::array{kC}));
  must_answer({.kind = kCall, .subject = kItemSignature}, SessionClient::CallPayload(std::array{kC}, {}));
  const uint32_t place = client().page().last_operator.load();
  ASSERT_NE(place, 0u);
  EXPECT_STREQ(client().page().operator_names + place - 1, "aten::_local_scalar_dense");
  // A record that is no call leaves the name of the last one that was.
  const uint64_t before = client().page().running_sequence.load();
  EXPECT_TRUE(must_answer({.kind = kDropSignature, .subject = kAddSignature}).error.ok());
  EXPECT_EQ(client().page().last_operator.load(), place);
  EXPECT_GT(client().page().running_sequence.load(), before);
}

TEST_F(ExecutorSessionTest, AVendorThatCannotShareMemorySaysSo) {
  define_calls();
  EXPECT_EQ(must_answer({.kind = kExportMemory, .subject = kA}).error.code, ErrorCode::kNotImplemented);
  const ImportRequest request{.ticket = 5, .storage = {}};
  EXPECT_EQ(must_answer({.kind = kImportMemory, .subject = kC}, Pack(request)).error.code, ErrorCode::kMalformed);
  ASSERT_TRUE(SendDescriptor(session_.descriptors(), 5, STDIN_FILENO).ok());
  EXPECT_EQ(must_answer({.kind = kImportMemory, .subject = kC}, Pack(request)).error.code, ErrorCode::kNotImplemented);
  EXPECT_TRUE(must_answer({.kind = kFence}).error.ok());
}

TEST_F(ExecutorSessionTest, CountsWhatItDoes) {
  define_calls();
  must_answer({.kind = kCall, .subject = kItemSignature}, SessionClient::CallPayload(std::array{kA}, {}));
  EXPECT_EQ(client().page().synchronous_calls.load(), 1u);
  EXPECT_EQ(client().page().state.load(), static_cast<uint64_t>(ExecutorState::kRunning));
  session_.end("enough");
  session_.cause();
  EXPECT_GT(client().page().busy_ns.load(), 0u);
  EXPECT_GT(client().page().last_active_ns.load(), 0u);
}

TEST_F(ExecutorSessionTest, ClosesInOrder) {
  client().send({.kind = kClose});
  EXPECT_EQ(session_.cause().code, ErrorCode::kOk);
  EXPECT_EQ(client().page().state.load(), static_cast<uint64_t>(ExecutorState::kEnded));
  EXPECT_EQ(client().page().exit_code.load(), 0);
  EXPECT_STREQ(client().page().end_cause, "the client closed the session");
}

}  // namespace
}  // namespace flagos::testing
