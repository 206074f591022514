// SPDX-License-Identifier: Apache-2.0
// Calls of a hosted libtorch: results, what they alias and resize, and what is refused.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "torch_host_driver.h"

namespace flagos::testing {
namespace {

Outcome NewTensor(Geometry geometry) {
  Outcome outcome;
  Output& output = outcome.outputs.emplace_back();
  output.tag = OutputTag::kTensor;
  output.storage_bytes = geometry.required_bytes();
  output.geometry = std::move(geometry);
  return outcome;
}

Geometry Contiguous(DType dtype, std::vector<int64_t> sizes) {
  Geometry geometry;
  geometry.dtype = dtype;
  geometry.strides.assign(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) geometry.strides[i - 1] = geometry.strides[i] * sizes[i];
  geometry.sizes = std::move(sizes);
  return geometry;
}

TEST(TorchHostCalls, AddIsAnsweredFirstAndAsynchronousThen) {
  Driver driver;
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4});
  const DeviceTensor x = driver.put(a), y = driver.put(b);
  const Answer answer = driver.call("aten::add.Tensor", {Of(x), Of(y), Scalar(2.0)});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  ASSERT_EQ(answer.tensors.size(), 1u);
  EXPECT_EQ(answer.outcome.outputs[0].storage_bytes, 48u);
  EXPECT_TRUE(at::equal(driver.get(answer.tensors[0]), at::add(a, b, 2.0)));
  for (const double alpha : {3.0, -1.5}) {  // lent tensors serve one call after the other
    const auto sum = driver.send("aten::add.Tensor", {Of(x), Of(y), Scalar(alpha)});
    EXPECT_TRUE(at::equal(driver.get(sum[0]), at::add(a, b, alpha)));
  }
  EXPECT_TRUE(driver.host().failures().empty());
  EXPECT_EQ(driver.host().mispredictions(), 0);
}

TEST(TorchHostCalls, APredictedFirstCallNeedsNoAnswer) {
  Driver driver;
  const at::Tensor a = at::randn({5, 3}), b = at::randn({3, 2});
  const auto product = driver.predict("aten::mm", {Of(driver.put(a)), Of(driver.put(b))},
                                      NewTensor(Contiguous(DType::kFloat32, {5, 2})));
  EXPECT_TRUE(at::equal(driver.get(product[0]), at::mm(a, b)));
  EXPECT_EQ(driver.host().mispredictions(), 0);
}

TEST(TorchHostCalls, OtherStridesThanPredictedAreMadeToFitAndCounted) {
  Driver driver;
  const at::Tensor a = at::randn({4, 6});
  const DeviceTensor x = driver.put(a);
  Geometry transposed = Contiguous(DType::kFloat32, {4, 6});
  transposed.strides = {1, 4};
  const auto sum = driver.predict("aten::add.Tensor", {Of(x), Of(x), Scalar(int64_t{1})}, NewTensor(transposed));
  EXPECT_TRUE(at::equal(driver.get(sum[0]), a + a));
  EXPECT_EQ(driver.host().mispredictions(), 1);
  EXPECT_TRUE(driver.host().failures().empty());
}

TEST(TorchHostCalls, OtherSizesThanPredictedFailTheCallAndPoisonItsResult) {
  Driver driver;
  const DeviceTensor x = driver.put(at::randn({4, 6}));
  const auto wrong = driver.predict("aten::add.Tensor", {Of(x), Of(x), Scalar(int64_t{1})},
                                    NewTensor(Contiguous(DType::kFloat32, {4, 5})));
  const auto failures = driver.host().failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].sequence, driver.sequence());
  const Answer answer = driver.call("aten::neg", {Of(wrong[0])});
  EXPECT_EQ(answer.error.message, failures[0].error.message);
}

TEST(TorchHostCalls, AFailureSpreadsAsOneRootError) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({2, 2})), good = driver.put(at::tensor({0, 1}));
  const DeviceTensor bad = driver.put(at::tensor({0, 7}));
  ASSERT_TRUE(driver.call("aten::index_select", {Of(x), Int(0), Of(good)}).error.ok());
  const auto picked = driver.send("aten::index_select", {Of(x), Int(0), Of(bad)});
  const uint64_t root = driver.sequence();
  ASSERT_TRUE(driver.call("aten::neg", {Of(x)}).error.ok());
  const auto negated = driver.send("aten::neg", {Of(picked[0])});
  const auto failures = driver.host().failures();
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].error.code, ErrorCode::kIndex);
  EXPECT_EQ(failures[1].sequence, root);
  EXPECT_EQ(failures[1].error.message, failures[0].error.message);
  EXPECT_EQ(driver.call("aten::neg", {Of(negated[0])}).error.message, failures[0].error.message);
  // A handle that is made anew is good again.
  ASSERT_TRUE(driver.backend().allocate(picked[0].handle, 16, 0, 0).ok());
  EXPECT_TRUE(driver.call("aten::neg", {Of(picked[0])}).error.ok());
}

TEST(TorchHostCalls, AStorageThatCouldNotBeAllocatedFailsItsReaders) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({3}));
  ASSERT_TRUE(driver.call("aten::neg", {Of(x)}).error.ok());
  const DeviceTensor never{driver.new_handle(), x.geometry};
  ASSERT_EQ(driver.backend().allocate(never.handle, uint64_t{1} << 60, 0, 0).code, ErrorCode::kOutOfMemory);
  driver.send("aten::neg", {Of(never)});
  ASSERT_EQ(driver.host().failures().size(), 1u);
  EXPECT_EQ(driver.host().failures()[0].error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(driver.host().failures()[0].sequence, driver.sequence());
}

TEST(TorchHostCalls, InPlaceCallsReturnNothingNew) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({3}));
  const Answer answer = driver.call("aten::mul_.Tensor", {Of(x), HostScalar(at::scalar_tensor(2.5))});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  EXPECT_TRUE(answer.outcome.outputs.empty());
  driver.send("aten::mul_.Tensor", {Of(x), HostScalar(at::scalar_tensor(2.0))});
  EXPECT_TRUE(at::equal(driver.get(x), at::full({3}, 5.0)));
}

TEST(TorchHostCalls, AnOutTensorIsResized) {
  Driver driver;
  const at::Tensor a = at::randn({8, 8});
  const DeviceTensor x = driver.put(a);
  const auto empty = [&] {
    DeviceTensor out{driver.new_handle(), Contiguous(DType::kFloat32, {0})};
    EXPECT_TRUE(driver.backend().allocate(out.handle, 0, 0, 0).ok());
    return out;
  };
  DeviceTensor first = empty();
  const Answer answer = driver.call("aten::add.out", {Of(x), Of(x), Scalar(int64_t{1}), Of(first)});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  ASSERT_EQ(answer.outcome.resized.size(), 1u);
  EXPECT_EQ(answer.outcome.resized[0].input, 2);
  EXPECT_EQ(answer.outcome.resized[0].storage_bytes, 256u);
  first.geometry = answer.outcome.resized[0].geometry;
  EXPECT_TRUE(at::equal(driver.get(first), a + a));
  DeviceTensor second = empty();
  driver.send("aten::add.out", {Of(x), Of(x), Scalar(int64_t{1}), Of(second)});
  second.geometry = first.geometry;
  EXPECT_TRUE(at::equal(driver.get(second), a + a));
  EXPECT_TRUE(driver.host().failures().empty());
}

TEST(TorchHostCalls, TwoResultsComeInOrder) {
  Driver driver;
  const at::Tensor a = at::randn({4, 20});
  const Answer answer = driver.call("aten::topk", {Of(driver.put(a)), Int(3), Int(-1), Bool(true), Bool(true)});
  ASSERT_EQ(answer.tensors.size(), 2u);
  const auto [values, indices] = at::topk(a, 3);
  EXPECT_TRUE(at::equal(driver.get(answer.tensors[0]), values));
  EXPECT_TRUE(at::equal(driver.get(answer.tensors[1]), indices));
}

TEST(TorchHostCalls, ResultsThatAreViewsOfAnInputAreAliases) {
  Driver driver;
  const at::Tensor a = at::arange(12).reshape({4, 3});
  const DeviceTensor x = driver.put(a);
  const Answer answer = driver.call("aten::split.Tensor", {Of(x), Int(2), Int(0)});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  const Output& list = answer.outcome.outputs.at(0);
  ASSERT_EQ(list.tag, OutputTag::kList);
  ASSERT_EQ(list.list.size(), 2u);
  EXPECT_EQ(list.list[1].tag, OutputTag::kAlias);
  EXPECT_EQ(list.list[1].alias, 0);
  EXPECT_EQ(list.list[1].geometry.offset, 6);
  EXPECT_TRUE(at::equal(driver.get({x.handle, list.list[1].geometry}), a.slice(0, 2)));
}

TEST(TorchHostCalls, ResultsThatShareAStorageAreSeparated) {
  Driver driver;
  const at::Tensor a = at::arange(12, at::kFloat).reshape({4, 3});
  const Answer answer = driver.call("aten::unsafe_chunk", {Of(driver.put(a)), Int(2), Int(1)});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  ASSERT_EQ(answer.outcome.outputs.at(0).list.size(), 2u);
  const Answer stacked =
      driver.call("aten::_foreach_add.Scalar", {List({driver.put(a), driver.put(a * 2)}), Scalar(1.0)});
  ASSERT_EQ(stacked.tensors.size(), 2u);
  EXPECT_TRUE(at::equal(driver.get(stacked.tensors[1]), a * 2 + 1));
}

TEST(TorchHostCalls, ListsOfTensorsAreLentToo) {
  Driver driver;
  const DeviceTensor p = driver.put(at::ones({3})), q = driver.put(at::ones({2}));
  ASSERT_TRUE(driver.call("aten::_foreach_mul_.Scalar", {List({p, q}), Scalar(2.0)}).error.ok());
  driver.send("aten::_foreach_mul_.Scalar", {List({p, q}), Scalar(3.0)});
  const DeviceTensor r = driver.put(at::ones({3}));
  driver.send("aten::_foreach_mul_.Scalar", {List({r, q}), Scalar(5.0)});
  EXPECT_TRUE(at::equal(driver.get(p), at::full({3}, 6.0)));
  EXPECT_TRUE(at::equal(driver.get(q), at::full({2}, 30.0)));
  EXPECT_TRUE(at::equal(driver.get(r), at::full({3}, 5.0)));
}

TEST(TorchHostCalls, IndexTakesOptionalTensorsAndHostIndices) {
  Driver driver;
  const at::Tensor a = at::randn({4, 5}), index = at::tensor({1, 3, 3});
  const DeviceTensor x = driver.put(a);
  const Answer answer = driver.call("aten::index.Tensor", {Of(x), OptionalList({std::nullopt, driver.put(index)})});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  EXPECT_TRUE(at::equal(driver.get(answer.tensors[0]), at::index_select(a, 1, index)));

  Value host;
  host.argument.tag = ArgTag::kOptionalTensorList;
  host.argument.list = {Inline(index).argument};
  host.free = Inline(index).free;
  const Answer rows = driver.call("aten::index.Tensor", {Of(x), host});
  EXPECT_TRUE(at::equal(driver.get(rows.tensors[0]), at::index_select(a, 0, index)));
}

TEST(TorchHostCalls, DataDecidesAndValuesAreAnswered) {
  Driver driver;
  const DeviceTensor some = driver.put(at::tensor({0, 2, 0, 3})), more = driver.put(at::tensor({1, 2, 0, 3}));
  EXPECT_EQ(driver.call("aten::nonzero", {Of(some)}).tensors.at(0).geometry.sizes[0], 2);
  const Answer answer = driver.call("aten::nonzero", {Of(more)});
  EXPECT_TRUE(at::equal(driver.get(answer.tensors.at(0)), at::nonzero(at::tensor({1, 2, 0, 3}))));
  EXPECT_EQ(driver.call("aten::equal", {Of(some), Of(more)}).outcome.outputs.at(0).integer, 0);
  const DeviceTensor pi = driver.put(at::scalar_tensor(3.25, at::kDouble));
  EXPECT_EQ(driver.call("aten::_local_scalar_dense", {Of(pi)}).outcome.outputs.at(0).real, 3.25);
}

TEST(TorchHostCalls, PyTorchsErrorsKeepTheirKindAndText) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({2, 3}));
  const auto expect = [&](const Answer& answer, ErrorCode code, const char* text) {
    EXPECT_EQ(answer.error.code, code) << answer.error.message;
    EXPECT_NE(answer.error.message.find(text), std::string::npos) << answer.error.message;
    EXPECT_EQ(answer.error.message.find("Exception raised from"), std::string::npos);
  };
  expect(driver.call("aten::mm", {Of(x), Of(x)}), ErrorCode::kRuntime,
         "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
  expect(driver.call("aten::argmax", {Of(x), Int(5), Bool(false)}), ErrorCode::kIndex, "Dimension out of range");
  expect(driver.call("aten::_linalg_solve_ex",
                     {Of(driver.put(at::zeros({2, 2}))), Of(driver.put(at::ones({2}))), Bool(true), Bool(true)}),
         ErrorCode::kLinAlg, "singular");
  expect(driver.call("aten::to_mkldnn", {Of(x), None()}), ErrorCode::kNotImplemented, "layout Mkldnn");
}

TEST(TorchHostCalls, AnUndefinedTensorIsNoTensor) {
  Driver driver;
  const at::Tensor input = at::randn({6, 4}), weight = at::randn({4}), grad = at::randn({6, 4});
  const auto [result, mean, rstd] = at::native_layer_norm(input, {4}, weight, {}, 1e-5);
  Value mask;
  mask.argument.tag = ArgTag::kBoolList;
  mask.argument.integers = {1, 0, 0};
  const std::vector<Value> values = {Of(driver.put(grad)), Of(driver.put(input)),  Ints({4}), Of(driver.put(mean)),
                                     Of(driver.put(rstd)), Of(driver.put(weight)), None(),    mask};
  const auto expected =
      std::get<0>(at::native_layer_norm_backward(grad, input, {4}, mean, rstd, weight, {}, {true, false, false}));
  const Answer answer = driver.call("aten::native_layer_norm_backward", values);
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  ASSERT_EQ(answer.outcome.outputs.size(), 3u);
  EXPECT_EQ(answer.outcome.outputs[1].tag, OutputTag::kUndefined);
  EXPECT_TRUE(at::equal(driver.get(answer.tensors.at(0)), expected));
  EXPECT_TRUE(at::equal(driver.get(driver.send("aten::native_layer_norm_backward", values).at(0)), expected));
}

TEST(TorchHostCalls, WhatReachesBeyondAStorageIsRefused) {
  Driver driver;
  DeviceTensor x = driver.put(at::ones({4}));
  x.geometry.sizes = {5};
  EXPECT_EQ(driver.call("aten::neg", {Of(x)}).error.code, ErrorCode::kMalformed);
  // The same signature, first with a storage that is large enough: every call is checked.
  const DeviceTensor large = driver.put(at::ones({5}));
  ASSERT_TRUE(driver.call("aten::neg", {Of(large)}).error.ok());
  const auto negated = driver.send("aten::neg", {Of(x)});
  ASSERT_EQ(driver.host().failures().size(), 1u);
  EXPECT_EQ(driver.host().failures()[0].error.code, ErrorCode::kMalformed);
  EXPECT_FALSE(driver.call("aten::neg", {Of(negated[0])}).error.ok());
  EXPECT_EQ(driver.call("aten::neg", {Of(DeviceTensor{999999, large.geometry})}).error.code, ErrorCode::kMalformed);
}

TEST(TorchHostCalls, MalformedCallsAndSignaturesAreRefused) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({4}));
  Error error;
  driver.define("aten::neg", {Scalar(1.0)}, nullptr, &error);
  EXPECT_EQ(error.code, ErrorCode::kMalformed);
  driver.define("aten::neg", {Of(x), Of(x)}, nullptr, &error);
  EXPECT_EQ(error.code, ErrorCode::kMalformed);
  driver.define("aten::empty.memory_format", {Ints({2}), Int(1), None(), None(), None(), None()}, nullptr, &error);
  EXPECT_EQ(error.code, ErrorCode::kMalformed);  // an int where a dtype belongs
  driver.define("aten::from_file", {Text("/etc/hostname"), None(), Int(1), None(), None(), None(), None()}, nullptr,
                &error);
  EXPECT_EQ(error.code, ErrorCode::kNotImplemented);
  EXPECT_EQ(driver.call("aten::from_file", {Text("/etc/hostname"), None(), Int(1), None(), None(), None(), None()})
                .error.code,
            ErrorCode::kNotImplemented);

  const uint32_t neg = driver.define("aten::neg", {Of(x)}, nullptr);
  const uint32_t handles[] = {x.handle, x.handle};
  driver.raw({neg, {handles, 2}, {}, {}, 1, 0, 0});    // too many inputs
  driver.raw({neg, {handles, 1}, {}, {}, 2, 0, 0});    // asynchronous before its results are known
  driver.raw({neg, {handles, 1}, {}, {}, 3, 70, 0});   // no such stream
  driver.raw({60000, {handles, 1}, {}, {}, 4, 0, 0});  // no such signature
  EXPECT_EQ(driver.host().failures().size(), 4u);
  for (const auto& failure : driver.host().failures()) EXPECT_EQ(failure.error.code, ErrorCode::kMalformed);
}

TEST(TorchHostCalls, WhatComputesIsOffered) {
  Driver driver;
  const auto names = driver.backend().operators();
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  EXPECT_GT(names.size(), 1000u);
  for (const char* name : {"aten::add.Tensor", "aten::copy_", "aten::_local_scalar_dense", "aten::_foreach_add_.List",
                           "aten::_fused_adamw_", "aten::native_dropout", "aten::add.out"}) {
    EXPECT_TRUE(has(name)) << name;
  }
  for (const char* name : {"aten::view", "aten::as_strided", "aten::empty_strided", "aten::set_.source_Storage",
                           "quantized::linear", "aten::from_file"}) {
    EXPECT_FALSE(has(name)) << name;
  }
  EXPECT_TRUE(driver.backend().has_operator("aten::convolution"));
  EXPECT_FALSE(driver.backend().has_operator("aten::from_file"));
  EXPECT_FALSE(driver.backend().has_operator("mine::unheard_of"));
}

}  // namespace
}  // namespace flagos::testing
