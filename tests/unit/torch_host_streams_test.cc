// SPDX-License-Identifier: Apache-2.0
// Streams other than the default: work waits for nobody who was not told to wait.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "torch_host_driver.h"

namespace flagos::testing {
namespace {

constexpr uint16_t kSide = 64, kOther = 65;
constexpr uint32_t kEvent = 5;

class TorchHostStreams : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const uint16_t stream : {kSide, kOther}) {
      ASSERT_TRUE(driver_.backend().create_stream(stream, 0, 0).ok());
      driver_.streams[stream] = 0;
    }
  }
  // Holds the stream back until release(): it waits for an event of another stream, which works on a large product.
  void hold(uint16_t stream) {
    if (slow_.handle == 0) {
      slow_ = driver_.put(at::ones({512, 512}));
      ASSERT_TRUE(driver_.call("aten::mm", {Of(slow_), Of(slow_)}).error.ok());
    }
    for (int i = 0; i < 40; ++i) driver_.free(driver_.send("aten::mm", {Of(slow_), Of(slow_)}, stream)[0]);
  }

  Driver driver_;
  DeviceTensor slow_;
};

TEST_F(TorchHostStreams, AMissingWaitShowsAsAWrongValueAndAWaitAsTheRightOne) {
  const DeviceTensor x = driver_.put(at::ones({1000}));
  ASSERT_TRUE(driver_.call("aten::add_.Scalar", {Of(x), Scalar(int64_t{1}), Scalar(int64_t{1})}).error.ok());
  hold(kSide);
  driver_.send("aten::add_.Scalar", {Of(x), Scalar(int64_t{5}), Scalar(int64_t{1})}, kSide);
  EXPECT_EQ(driver_.get(x)[0].item<float>(), 2);  // the default stream did not wait
  ASSERT_TRUE(driver_.backend().record_event(kEvent, kSide, false, [](const Error&) {}).ok());
  ASSERT_TRUE(driver_.backend().wait_event(kEvent, 0).ok());
  driver_.send("aten::add_.Scalar", {Of(x), Scalar(int64_t{10}), Scalar(int64_t{1})});
  EXPECT_EQ(driver_.get(x)[0].item<float>(), 17);
  EXPECT_TRUE(driver_.host().failures().empty());
}

TEST_F(TorchHostStreams, ResultsHaveTheirHandlesAtOnceAndTheirValuesInOrder) {
  const at::Tensor a = at::randn({64, 64});
  const DeviceTensor x = driver_.put(a);
  ASSERT_TRUE(driver_.call("aten::mm", {Of(x), Of(x)}).error.ok());
  hold(kSide);
  const auto square = driver_.send("aten::mm", {Of(x), Of(x)}, kSide);
  const auto fourth = driver_.send("aten::mm", {Of(square[0]), Of(square[0])}, kSide);
  driver_.free(x);  // what is queued holds its operands
  driver_.wait(kSide);
  EXPECT_TRUE(at::equal(driver_.get(fourth[0]), at::mm(at::mm(a, a), at::mm(a, a))));
  EXPECT_EQ(driver_.host().mispredictions(), 0);
}

TEST_F(TorchHostStreams, AnUnknownCallIsAnsweredByTheStream) {
  const at::Tensor a = at::randn({10});
  const DeviceTensor x = driver_.put(a);
  hold(kSide);
  const Answer answer = driver_.call("aten::exp", {Of(x)}, kSide);
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  EXPECT_TRUE(at::equal(driver_.get(answer.tensors[0]), at::exp(a)));
  const auto again = driver_.send("aten::exp", {Of(x)}, kSide);  // known now
  driver_.wait(kSide);
  EXPECT_TRUE(at::equal(driver_.get(again[0]), at::exp(a)));
  EXPECT_EQ(driver_.call("aten::mm", {Of(x), Of(x)}, kSide).error.code, ErrorCode::kRuntime);
}

TEST_F(TorchHostStreams, AFailureOfAStreamPoisonsItsResults) {
  const DeviceTensor x = driver_.put(at::ones({2, 2})), good = driver_.put(at::tensor({0, 1}));
  const DeviceTensor bad = driver_.put(at::tensor({0, 9}));
  ASSERT_TRUE(driver_.call("aten::index_select", {Of(x), Int(0), Of(good)}).error.ok());
  const auto picked = driver_.send("aten::index_select", {Of(x), Int(0), Of(bad)}, kSide);
  driver_.wait(kSide);
  ASSERT_EQ(driver_.host().failures().size(), 1u);
  EXPECT_EQ(driver_.call("aten::neg", {Of(picked[0])}).error.message, driver_.host().failures()[0].error.message);
}

TEST_F(TorchHostStreams, WhatIsQueuedBehindAFailureIsToldOfIt) {
  const DeviceTensor x = driver_.put(at::ones({2, 2})), good = driver_.put(at::tensor({0, 1}));
  const DeviceTensor bad = driver_.put(at::tensor({0, 9}));
  ASSERT_TRUE(driver_.call("aten::index_select", {Of(x), Int(0), Of(good)}).error.ok());
  ASSERT_TRUE(driver_.call("aten::neg", {Of(x)}).error.ok());
  hold(kSide);
  const auto picked = driver_.send("aten::index_select", {Of(x), Int(0), Of(bad)}, kSide);
  const auto negated = driver_.send("aten::neg", {Of(picked[0])}, kSide);
  // Queued before anything has failed: a value that was never computed, and one that has nothing to do with it.
  const Error root = driver_.call("aten::exp", {Of(negated[0])}, kSide).error;
  EXPECT_EQ(root.code, ErrorCode::kIndex);
  hold(kSide);
  driver_.send("aten::index_select", {Of(x), Int(0), Of(bad)}, kSide);
  EXPECT_EQ(driver_.call("aten::exp", {Of(x)}, kSide).error.message, root.message);
  EXPECT_TRUE(driver_.call("aten::exp", {Of(x)}, kSide).error.ok());
  EXPECT_EQ(driver_.call("aten::exp", {Of(negated[0])}).error.message, root.message);
}

TEST_F(TorchHostStreams, AnOutTensorIsResizedWithoutDisturbingItsReaders) {
  const at::Tensor a = at::randn({300});
  const DeviceTensor x = driver_.put(a);
  const auto small = [&] { return driver_.put(at::full({3}, 8.0f)); };
  DeviceTensor first = small();
  const Answer answer = driver_.call("aten::mul.out", {Of(x), Of(x), Of(first)}, kSide);
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  ASSERT_EQ(answer.outcome.resized.size(), 1u);
  first.geometry = answer.outcome.resized[0].geometry;
  EXPECT_TRUE(at::equal(driver_.get(first), a * a));

  const DeviceTensor second = small();
  ASSERT_TRUE(driver_.call("aten::neg", {Of(second)}).error.ok());
  hold(kOther);
  const auto negated = driver_.send("aten::neg", {Of(second)}, kOther);  // reads the old contents, later
  driver_.send("aten::mul.out", {Of(x), Of(x), Of(second)}, kSide);
  driver_.wait(kSide);
  driver_.wait(kOther);
  EXPECT_TRUE(at::equal(driver_.get({second.handle, first.geometry}), a * a));
  EXPECT_TRUE(at::equal(driver_.get(negated[0]), at::full({3}, -8.0f)));
  EXPECT_TRUE(driver_.host().failures().empty());
}

TEST_F(TorchHostStreams, FencesAndEventsTellWhenTheyAreReached) {
  hold(kSide);
  std::atomic<int> reached{0};
  const auto count = [&](const Error&) { ++reached; };
  driver_.backend().fence(0, 0, count);
  EXPECT_EQ(reached, 1);  // the default stream has nothing to do
  ASSERT_TRUE(driver_.backend().record_event(kEvent, kSide, true, count).ok());
  driver_.backend().fence(kAllStreams, 0, count);
  EXPECT_EQ(reached, 1);
  driver_.wait(kSide);
  EXPECT_EQ(reached, 3);
}

}  // namespace
}  // namespace flagos::testing
