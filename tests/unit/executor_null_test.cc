// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/executor_session.h"
#include "vendors/null/outcome.h"
#include "vendors/null/vendor.h"

namespace flagos::testing {
namespace {

using enum RecordKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

OperatorDefinition Returning(std::vector<ReturnKind> returns, const std::string& name = "aten::x") {
  return {name, "", 1, std::move(returns)};
}

Argument ListArgument(std::vector<Argument> items) {
  Argument argument;
  argument.tag = ArgTag::kTensorList;
  argument.list = std::move(items);
  return argument;
}

TEST(NullOutcomeTest, BroadcastsItsTensors) {
  const Outcome outcome = null::PlausibleOutcome(
      Returning({ReturnKind::kTensor, ReturnKind::kMutatedArgument}),
      {.op = 0, .arguments = {TensorArgument({5, 1, 3}, DType::kInt16), TensorArgument({4, 1})}, .expected = {}});
  ASSERT_EQ(outcome.outputs.size(), 1u);
  const Geometry& geometry = outcome.outputs[0].geometry;
  EXPECT_THAT(geometry.sizes, ElementsAre(5, 4, 3));
  EXPECT_THAT(geometry.strides, ElementsAre(12, 3, 1));
  EXPECT_EQ(geometry.dtype, DType::kInt16);
  EXPECT_EQ(outcome.outputs[0].storage_bytes, 120u);
}

TEST(NullOutcomeTest, KeepsTheFirstSizesWhereNothingBroadcasts) {
  const Outcome outcome =
      null::PlausibleOutcome(Returning({ReturnKind::kTensor}),
                             {.op = 0, .arguments = {TensorArgument({2, 3}), TensorArgument({4, 5})}, .expected = {}});
  EXPECT_THAT(outcome.outputs[0].geometry.sizes, ElementsAre(2, 3));
}

TEST(NullOutcomeTest, GivesListsAnItemForEach) {
  const Outcome outcome = null::PlausibleOutcome(
      Returning({ReturnKind::kTensorList}),
      {.op = 0, .arguments = {ListArgument({TensorArgument({2}), TensorArgument({0, 7})})}, .expected = {}});
  ASSERT_EQ(outcome.outputs.size(), 1u);
  ASSERT_EQ(outcome.outputs[0].list.size(), 2u);
  EXPECT_THAT(outcome.outputs[0].list[1].geometry.sizes, ElementsAre(0, 7));
  EXPECT_EQ(outcome.outputs[0].list[1].storage_bytes, 0u);
  EXPECT_EQ(OutputHandles(outcome), 2u);
}

TEST(NullOutcomeTest, ReadsNumbersOfTheTensorsKind) {
  const auto tag = [](DType dtype) {
    return null::PlausibleOutcome(Returning({ReturnKind::kValue}, "aten::_local_scalar_dense"),
                                  {.op = 0, .arguments = {TensorArgument({}, dtype)}, .expected = {}})
        .outputs[0]
        .tag;
  };
  EXPECT_EQ(tag(DType::kBFloat16), OutputTag::kDouble);
  EXPECT_EQ(tag(DType::kInt64), OutputTag::kInt);
  EXPECT_EQ(tag(DType::kBool), OutputTag::kBool);
  EXPECT_EQ(tag(DType::kComplex64), OutputTag::kComplex);
}

TEST(NullOutcomeTest, DoesWhatThePredictionSays) {
  Signature signature{.op = 0, .arguments = {TensorArgument({2})}, .predicted = true, .expected = {}};
  signature.expected.outputs.push_back({.tag = OutputTag::kUndefined, .geometry = {}, .list = {}, .sparse = {}});
  EXPECT_EQ(null::PlausibleOutcome(Returning({ReturnKind::kTensor}), signature), signature.expected);
}

TEST(NullVendorTest, PresentsTheDevicesAskedFor) {
  null::NullVendor vendor;
  const auto devices = vendor.start({.devices = {3, 1}, .values = {{"devices", "4"}, {"memory", "1000"}}});
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices.value().size(), 2u);
  EXPECT_EQ(devices.value()[0].uuid[15], 3);
  EXPECT_EQ(devices.value()[0].total_memory, 1000u);
}

TEST(NullVendorTest, RefusesWhatItDoesNotUnderstand) {
  const auto message = [](const vendor::Options& options) { return null::NullVendor().start(options).error().message; };
  EXPECT_THAT(message({.devices = {}, .values = {{"devices", "0"}}}), HasSubstr("option devices is \"0\""));
  EXPECT_THAT(message({.devices = {}, .values = {{"devices", "4x"}}}), HasSubstr("\"4x\""));
  EXPECT_THAT(message({.devices = {}, .values = {{"speed", "4"}}}), HasSubstr("no option \"speed\""));
  EXPECT_THAT(message({.devices = {2}, .values = {}}), HasSubstr("no device 2"));
}

class NullMemoryTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kAdd = 1;
  NullMemoryTest()
      : session_(std::make_unique<null::NullVendor>(),
                 {.devices = {}, .values = {{"devices", "2"}, {"memory", "1000"}}}, 950) {
    client().define_operator(kAdd, "aten::add", "Tensor", {ReturnKind::kTensor});
    client().define_signature(kAdd, {.op = kAdd, .arguments = {TensorArgument({100})}, .expected = {}});
  }
  SessionClient& client() { return session_.client(); }
  std::optional<Reply> allocate(uint32_t handle, uint64_t bytes, uint8_t device = 0) {
    return client().request({.kind = kAllocate, .subject = handle, .stream = device, .device = device}, Pack(bytes));
  }
  void add(uint32_t input, uint32_t output) {
    client().send({.kind = kCall, .subject = kAdd}, SessionClient::CallPayload(std::array{input}, std::array{output}));
  }
  ExecutorSession session_;
};

TEST_F(NullMemoryTest, HoldsTheDevicesLimitAndTheQuota) {
  const Reply full = *allocate(2, 1001);
  EXPECT_EQ(full.error.code, ErrorCode::kOutOfMemory);
  EXPECT_THAT(full.error.message, HasSubstr("1000 of 1000 free"));
  EXPECT_TRUE(allocate(1, 900)->error.ok());
  EXPECT_TRUE(allocate(2, 900, 1)->error.ok()) << "the other device has a quota of its own";
  const Reply over = *allocate(3, 51);
  EXPECT_EQ(over.error.code, ErrorCode::kOutOfMemory);
  EXPECT_THAT(over.error.message, HasSubstr("900 bytes of its quota of 950 bytes there, session s7 most of it"));
  EXPECT_TRUE(allocate(3, 50)->error.ok());
}

TEST_F(NullMemoryTest, WhatAFailedCallShouldHaveMadeRaisesItsError) {
  ASSERT_TRUE(allocate(1, 700)->error.ok());
  add(1, 2);  // 400 bytes do not fit
  add(2, 3);
  const Reply told = *client().request({.kind = kFence});
  EXPECT_TRUE(told.deferred);
  EXPECT_EQ(told.error.code, ErrorCode::kOutOfMemory);
  // Told once as deferred; a reader of the poisoned handle is still told.
  const Reply reader =
      *client().request({.kind = kCall, .subject = kAdd}, SessionClient::CallPayload(std::array{3u}, std::array{4u}));
  EXPECT_FALSE(reader.deferred);
  EXPECT_EQ(reader.error.code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(client().request({.kind = kFence})->error.ok());
  // Freed and made anew, the handle is as good as any.
  client().send({.kind = kFree, .subject = 1});
  ASSERT_TRUE(allocate(2, 8)->error.ok());
  add(2, 3);
  EXPECT_TRUE(client().request({.kind = kFence})->error.ok());
}

}  // namespace
}  // namespace flagos::testing
