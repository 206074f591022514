// SPDX-License-Identifier: Apache-2.0
// Sparse tensors in a hosted libtorch: made of components that a client may have written as it likes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "torch_host_driver.h"

namespace flagos::testing {
namespace {

constexpr uint16_t kSide = 64;

Value Sparse(const SparseShape& shape, const std::vector<DeviceTensor>& components) {
  Value value;
  value.argument.tag = ArgTag::kSparseTensor;
  value.argument.sparse = shape;
  for (const DeviceTensor& component : components) {
    value.argument.list.push_back(Of(component).argument);
    value.handles.push_back(component.handle);
  }
  return value;
}

SparseShape Shape(Layout layout, std::vector<int64_t> sizes, bool coalesced = false, uint8_t dense_dim = 0) {
  SparseShape shape;
  shape.layout = layout;
  shape.dtype = DType::kFloat32;
  shape.coalesced = coalesced;
  shape.sparse_dim = static_cast<uint8_t>(sizes.size() - dense_dim);
  shape.dense_dim = dense_dim;
  shape.sizes = std::move(sizes);
  return shape;
}

class TorchHostSparse : public ::testing::Test {
 protected:
  Value coo(const at::Tensor& indices, const at::Tensor& values, std::vector<int64_t> sizes, bool coalesced = false) {
    const auto dense_dim = static_cast<uint8_t>(values.dim() - 1);
    return Sparse(Shape(Layout::kSparse, std::move(sizes), coalesced, dense_dim),
                  {driver_.put(indices), driver_.put(values)});
  }
  Value compressed(Layout layout, const at::Tensor& compressed, const at::Tensor& plain, const at::Tensor& values,
                   std::vector<int64_t> sizes) {
    return Sparse(Shape(layout, std::move(sizes)), {driver_.put(compressed), driver_.put(plain), driver_.put(values)});
  }
  Answer dense_of(const Value& sparse, uint16_t stream = 0) {
    return driver_.call("aten::_to_dense", {sparse, None(), None()}, stream);
  }
  at::Tensor must(const Answer& answer) {
    EXPECT_TRUE(answer.error.ok()) << answer.error.message;
    return answer.tensors.empty() ? at::Tensor() : driver_.get(answer.tensors[0]);
  }
  void expect_refused(const Value& sparse, ErrorCode code, const char* text) {
    const Answer answer = dense_of(sparse);
    EXPECT_EQ(answer.error.code, code) << answer.error.message;
    EXPECT_NE(answer.error.message.find(text), std::string::npos) << answer.error.message;
  }
  // A signature that is refused when it is defined.
  void expect_malformed(const Value& sparse, const char* text) {
    Error error;
    driver_.define("aten::_to_dense", {sparse, None(), None()}, nullptr, &error);
    EXPECT_EQ(error.code, ErrorCode::kMalformed);
    EXPECT_NE(error.message.find(text), std::string::npos) << error.message;
  }

  const at::Tensor indices_ = at::tensor({0, 1, 1, 1, 0, 2}, at::kLong).view({2, 3});
  const at::Tensor values_ = at::tensor({1.0F, 2.0F, 3.0F});
  const at::Tensor dense_ = at::tensor({0.0F, 1.0F, 0.0F, 2.0F, 0.0F, 3.0F}).view({2, 3});
  Driver driver_;
};

TEST_F(TorchHostSparse, EveryLayoutIsMadeOfItsComponents) {
  EXPECT_TRUE(at::equal(must(dense_of(coo(indices_, values_, {2, 3}, true))), dense_));
  const at::Tensor rows = at::tensor({0, 1, 3}, at::kLong), columns = at::tensor({1, 0, 2}, at::kLong);
  EXPECT_TRUE(at::equal(must(dense_of(compressed(Layout::kSparseCsr, rows, columns, values_, {2, 3}))), dense_));
  EXPECT_TRUE(at::equal(must(dense_of(compressed(Layout::kSparseCsc, rows, columns, values_, {3, 2}))), dense_.t()));
  const at::Tensor blocks = at::arange(12, at::kFloat).view({3, 2, 2});
  const at::Tensor from_blocks = must(dense_of(compressed(Layout::kSparseBsr, rows, columns, blocks, {4, 6})));
  EXPECT_TRUE(at::equal(from_blocks.slice(0, 2, 4).slice(1, 4, 6), blocks[2]));
  EXPECT_TRUE(at::equal(
      must(dense_of(compressed(Layout::kSparseBsc, rows, columns, blocks, {6, 4}))).slice(0, 4, 6).slice(1, 2, 4),
      blocks[2]));
}

TEST_F(TorchHostSparse, AResultIsDescribedByItsComponentsEachTimeAnew) {
  for (const int64_t entries : {3, 1, 0}) {
    const at::Tensor input = at::zeros({4});
    input.slice(0, 0, entries).fill_(7);
    const Answer answer = driver_.call("aten::_to_sparse.sparse_dim", {Of(driver_.put(input)), Int(1)});
    ASSERT_TRUE(answer.error.ok()) << answer.error.message;
    ASSERT_EQ(answer.outcome.outputs.size(), 1u);
    EXPECT_EQ(answer.outcome.outputs[0].sparse, Shape(Layout::kSparse, {4}, true));
    ASSERT_EQ(answer.tensors.size(), 2u);
    EXPECT_TRUE(at::equal(driver_.get(answer.tensors[0]), at::arange(entries).view({1, entries})));
    EXPECT_TRUE(at::equal(driver_.get(answer.tensors[1]), at::full({entries}, 7.0F)));
  }
}

TEST_F(TorchHostSparse, NoCallIsAsynchronous) {
  const Value sparse = coo(indices_, values_, {2, 3});
  ASSERT_TRUE(dense_of(sparse).error.ok());
  const uint32_t number = driver_.define("aten::_to_dense", {sparse, None(), None()}, nullptr);
  const uint32_t out = driver_.new_handle();
  driver_.raw({number, sparse.handles, {&out, 1}, {}, 1, 0, 0});
  ASSERT_EQ(driver_.host().failures().size(), 1u);
  EXPECT_EQ(driver_.host().failures()[0].error.code, ErrorCode::kMalformed);
}

TEST_F(TorchHostSparse, WhatIsWrittenIsToldBehindTheResults) {
  const Value self = coo(indices_, values_, {2, 3}, true);
  const Value other = coo(at::tensor({0, 0}, at::kLong).view({2, 1}), at::ones({1}), {2, 3}, true);
  const Answer answer = driver_.call("aten::add_.Tensor", {self, other, Scalar(int64_t{1})});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  ASSERT_EQ(answer.outcome.outputs.size(), 1u);
  EXPECT_EQ(answer.outcome.outputs[0].tag, OutputTag::kSparse);
  EXPECT_EQ(answer.outcome.outputs[0].sparse.sizes, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(answer.tensors.size(), 2u);
  EXPECT_EQ(driver_.get(answer.tensors[1]).numel(), 4);
  // What the handles meant before is as it was.
  EXPECT_TRUE(at::equal(must(dense_of(self)), dense_));
}

TEST_F(TorchHostSparse, ComponentsThatAreWrittenInPlaceAreAliases) {
  const at::Tensor rows = at::tensor({0, 1, 3}, at::kLong), columns = at::tensor({1, 0, 2}, at::kLong);
  const Value self = compressed(Layout::kSparseCsr, rows, columns, values_, {2, 3});
  const Answer answer = driver_.call("aten::mul_.Scalar", {self, Scalar(2.0)});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  ASSERT_EQ(answer.outcome.outputs.size(), 1u);
  const std::vector<Output>& parts = answer.outcome.outputs[0].list;
  ASSERT_EQ(parts.size(), 3u);
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].tag, OutputTag::kAlias);
    EXPECT_EQ(parts[i].alias, i);
  }
  EXPECT_TRUE(at::equal(must(dense_of(self)), dense_ * 2));
}

TEST_F(TorchHostSparse, AKernelThatResizesAComponentResizesItsOwn) {
  const Value self = coo(indices_, values_.view({3, 1}), {2, 3, 1});
  const Answer answer = driver_.call("aten::sparse_resize_", {self, Ints({2, 3, 100}), Int(2), Int(1)});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  const Output& told = answer.outcome.outputs.at(0);
  EXPECT_EQ(told.sparse.sizes, (std::vector<int64_t>{2, 3, 100}));
  EXPECT_EQ(told.list.at(1).tag, OutputTag::kTensor);
  EXPECT_GE(told.list[1].storage_bytes, 1200u);
  EXPECT_TRUE(at::equal(must(dense_of(self)), dense_.view({2, 3, 1})));
}

TEST_F(TorchHostSparse, ListsHoldSparseTensors) {
  const Value one = coo(indices_, values_, {2, 3}), two = coo(indices_, values_ * 2, {2, 3});
  Value list;
  list.argument.tag = ArgTag::kTensorList;
  list.argument.list = {one.argument, two.argument};
  list.handles = one.handles;
  list.handles.insert(list.handles.end(), two.handles.begin(), two.handles.end());
  const Answer answer = driver_.call("aten::cat", {list, Int(0)});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  EXPECT_TRUE(at::equal(must(dense_of(Sparse(answer.outcome.outputs.at(0).sparse, answer.tensors))),
                        at::cat({dense_, dense_ * 2})));
}

TEST_F(TorchHostSparse, IndicesOutOfBoundsAreRefusedAtEveryCall) {
  const DeviceTensor indices = driver_.put(indices_), values = driver_.put(values_);
  const Value sparse = Sparse(Shape(Layout::kSparse, {2, 3}), {indices, values});
  ASSERT_TRUE(dense_of(sparse).error.ok());
  for (const int64_t bad : {int64_t{3}, int64_t{-1}, int64_t{1} << 62}) {
    const at::Tensor wrong = indices_.clone();
    wrong[1][2] = bad;
    ASSERT_TRUE(driver_.call("aten::copy_", {Of(indices), Of(driver_.put(wrong)), Bool(false)}).error.ok());
    const Answer answer = dense_of(sparse);
    EXPECT_EQ(answer.error.code, ErrorCode::kRuntime) << bad;
  }
  ASSERT_TRUE(driver_.call("aten::copy_", {Of(indices), Of(driver_.put(indices_)), Bool(false)}).error.ok());
  EXPECT_TRUE(at::equal(must(dense_of(sparse)), dense_));
}

TEST_F(TorchHostSparse, WhatIsCalledCoalescedHasToBe) {
  const at::Tensor twice = at::tensor({1, 1, 0, 0}, at::kLong).view({2, 2});
  EXPECT_TRUE(dense_of(coo(twice, at::ones({2}), {2, 3})).error.ok());
  EXPECT_EQ(dense_of(coo(twice, at::ones({2}), {2, 3}, true)).error.code, ErrorCode::kRuntime);
  const at::Tensor backwards = at::tensor({1, 0, 0, 0}, at::kLong).view({2, 2});
  EXPECT_EQ(dense_of(coo(backwards, at::ones({2}), {2, 3}, true)).error.code, ErrorCode::kRuntime);
}

TEST_F(TorchHostSparse, CompressedIndicesThatLieAreRefused) {
  const at::Tensor rows = at::tensor({0, 1, 3}, at::kLong), columns = at::tensor({1, 0, 2}, at::kLong);
  const auto refused = [&](const at::Tensor& compressed_indices, const at::Tensor& plain,
                           std::vector<int64_t> sizes = {2, 3}) {
    const Answer answer =
        dense_of(compressed(Layout::kSparseCsr, compressed_indices, plain, values_, std::move(sizes)));
    EXPECT_EQ(answer.error.code, ErrorCode::kRuntime) << answer.error.message;
  };
  refused(at::tensor({0, 1, 4}, at::kLong), columns);
  refused(at::tensor({0, 3, 1}, at::kLong), columns);
  refused(at::tensor({-5, 1, 3}, at::kLong), columns);
  refused(rows, at::tensor({1, 0, 3}, at::kLong));
  refused(rows, at::tensor({1, -1, 2}, at::kLong));
  refused(rows, columns, {3, 3});
  refused(rows, columns.slice(0, 0, 2));
}

TEST_F(TorchHostSparse, ComponentsThatFitNoShapeAreRefusedOnce) {
  expect_malformed(coo(indices_.to(at::kInt), values_, {2, 3}), "int64");
  expect_malformed(coo(indices_.view({6}), values_, {2, 3}), "sparse dimensions");
  expect_malformed(coo(indices_, at::ones({4}), {2, 3}), "values");
  expect_malformed(coo(indices_.slice(0, 0, 1), values_, {2, 3}), "sparse dimensions");
  expect_malformed(coo(indices_, at::ones({3, 2}), {2, 3, 4}), "values");
  const at::Tensor rows = at::tensor({0, 1, 3}, at::kLong), columns = at::tensor({1, 0, 2}, at::kLong);
  expect_malformed(compressed(Layout::kSparseCsr, rows, columns.to(at::kInt), values_, {2, 3}), "int32 nor int64");
  expect_malformed(compressed(Layout::kSparseCsr, rows.to(at::kFloat), columns.to(at::kFloat), values_, {2, 3}),
                   "int32 nor int64");
  expect_malformed(compressed(Layout::kSparseCsr, rows.view({1, 3}), columns, values_, {2, 3}), "dimensions");
  expect_malformed(compressed(Layout::kSparseBsr, rows, columns, values_, {2, 3}), "dimensions");
}

TEST_F(TorchHostSparse, AComponentThatReachesBeyondItsStorageIsRefused) {
  const DeviceTensor indices = driver_.put(indices_);
  DeviceTensor values = driver_.put(values_);
  values.handle = driver_.put(at::ones({2})).handle;
  expect_refused(Sparse(Shape(Layout::kSparse, {2, 3}), {indices, values}), ErrorCode::kMalformed, "storage");
  expect_refused(Sparse(Shape(Layout::kSparse, {2, 3}), {{999999, indices.geometry}, values}), ErrorCode::kMalformed,
                 "not live");
}

TEST_F(TorchHostSparse, AMissingKernelIsNamedWithItsKey) {
  const Value sparse = coo(indices_, values_, {2, 3});
  const Answer answer = driver_.call("aten::exp", {sparse});
  EXPECT_EQ(answer.error.code, ErrorCode::kNotImplemented);
  EXPECT_NE(answer.error.message.find("'aten::exp'"), std::string::npos) << answer.error.message;
  EXPECT_NE(answer.error.message.find("SparseCPU"), std::string::npos) << answer.error.message;
  const Answer dense = driver_.call("aten::_coalesce", {Of(driver_.put(dense_))});
  EXPECT_EQ(dense.error.code, ErrorCode::kNotImplemented);
  EXPECT_NE(dense.error.message.find("'aten::_coalesce'"), std::string::npos) << dense.error.message;
  EXPECT_LT(dense.error.message.size(), 300u);
}

TEST_F(TorchHostSparse, ComponentsOfAQueuedStreamAreCheckedInItsOrder) {
  ASSERT_TRUE(driver_.backend().create_stream(kSide, 0, 0).ok());
  driver_.streams[kSide] = 0;
  const DeviceTensor indices = driver_.put(at::full_like(indices_, 99)), values = driver_.put(values_);
  const DeviceTensor good = driver_.put(indices_), slow = driver_.put(at::ones({512, 512}));
  ASSERT_TRUE(driver_.call("aten::mm", {Of(slow), Of(slow)}).error.ok());
  ASSERT_TRUE(driver_.call("aten::copy_", {Of(driver_.put(indices_)), Of(good), Bool(false)}).error.ok());
  for (int i = 0; i < 20; ++i) driver_.free(driver_.send("aten::mm", {Of(slow), Of(slow)}, kSide)[0]);
  driver_.send("aten::copy_", {Of(indices), Of(good), Bool(false)}, kSide);
  const Answer answer = dense_of(Sparse(Shape(Layout::kSparse, {2, 3}, true), {indices, values}), kSide);
  EXPECT_TRUE(at::equal(must(answer), dense_));
}

}  // namespace
}  // namespace flagos::testing
