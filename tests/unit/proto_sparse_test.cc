// SPDX-License-Identifier: Apache-2.0
// Sparse tensors as arguments and as results.
#include <gtest/gtest.h>

#include <functional>

#include "proto/wire/signature.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

constexpr int64_t kHuge = int64_t{1} << 61;

Geometry Dense(DType dtype, std::vector<int64_t> sizes, uint8_t device = 0) {
  Geometry geometry;
  geometry.dtype = dtype;
  geometry.device = device;
  geometry.strides.assign(sizes.size(), 1);
  geometry.sizes = std::move(sizes);
  return geometry;
}

// 4 x 5 x 6 with three entries of six elements.
SparseShape Coo() {
  SparseShape shape;
  shape.dtype = DType::kFloat32;
  shape.coalesced = true;
  shape.sparse_dim = 2;
  shape.dense_dim = 1;
  shape.sizes = {4, 5, 6};
  return shape;
}
// A batch of two matrices in blocks.
SparseShape Bsr() {
  SparseShape shape;
  shape.layout = Layout::kSparseBsr;
  shape.dtype = DType::kBFloat16;
  shape.sparse_dim = 2;
  shape.sizes = {2, 4, 4};
  return shape;
}

std::vector<Geometry> ComponentsOf(const SparseShape& shape) {
  if (shape.layout == Layout::kSparse) return {Dense(DType::kInt64, {2, 3}), Dense(shape.dtype, {3, 6})};
  return {Dense(DType::kInt32, {2, 3}), Dense(DType::kInt32, {2, 1}), Dense(shape.dtype, {2, 1, 2, 2})};
}

Argument Sparse(const SparseShape& shape) {
  Argument argument;
  argument.tag = ArgTag::kSparseTensor;
  argument.sparse = shape;
  for (const Geometry& geometry : ComponentsOf(shape)) {
    Argument& component = argument.list.emplace_back();
    component.tag = ArgTag::kTensor;
    component.tensor = geometry;
  }
  return argument;
}

Output SparseOutput(const SparseShape& shape) {
  Output output;
  output.tag = OutputTag::kSparse;
  output.sparse = shape;
  for (const Geometry& geometry : ComponentsOf(shape)) {
    Output& component = output.list.emplace_back();
    component.tag = OutputTag::kTensor;
    component.geometry = geometry;
    component.storage_bytes = geometry.required_bytes();
  }
  output.list.front().tag = OutputTag::kAlias;
  output.list.front().alias = 1;
  return output;
}

std::vector<std::byte> Encode(const Signature& signature) {
  ByteWriter out;
  EncodeSignature(out, signature);
  return {out.bytes().begin(), out.bytes().end()};
}
std::vector<std::byte> Encode(const Outcome& outcome) {
  ByteWriter out;
  EncodeOutcome(out, outcome);
  return {out.bytes().begin(), out.bytes().end()};
}

Signature Of(std::vector<Argument> arguments) {
  Signature signature;
  signature.arguments = std::move(arguments);
  return signature;
}

bool Decodes(const Argument& argument) { return DecodeSignature(Encode(Of({argument}))).ok(); }
bool Decodes(std::span<const std::byte> outcome) {
  ByteReader in(outcome);
  Outcome back;
  return DecodeOutcome(in, back);
}
bool Decodes(const Output& output) { return Decodes(Encode(Outcome{{output}, {}})); }

// The same change of an argument and of a result is refused in both.
void ExpectRefused(const SparseShape& from, const std::function<void(SparseShape&)>& change) {
  Argument argument = Sparse(from);
  Output output = SparseOutput(from);
  ASSERT_TRUE(Decodes(argument) && Decodes(output));
  change(argument.sparse);
  change(output.sparse);
  EXPECT_FALSE(Decodes(argument));
  EXPECT_FALSE(Decodes(output));
}

TEST(SparseWire, RoundTripsAlsoInLists) {
  Argument list;
  list.tag = ArgTag::kOptionalTensorList;
  list.list = {Sparse(Bsr()), Argument{}, Sparse(Coo())};
  const auto bytes = Encode(Of({Sparse(Coo()), list}));
  const auto back = DecodeSignature(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(Encode(back.value()), bytes);
  EXPECT_EQ(back.value().inputs, 7u);
  EXPECT_EQ(back.value().free_bytes, 0u);
  EXPECT_TRUE(back.value().sparse);
  EXPECT_EQ(back.value().arguments[0].sparse, Coo());
  EXPECT_EQ(back.value().arguments[1].list[0].sparse, Bsr());
  EXPECT_EQ(back.value().arguments[1].list[0].list[2].tensor, ComponentsOf(Bsr())[2]);
}

TEST(SparseWire, ResultsRoundTripAndTakeHandles) {
  const Outcome outcome = {{SparseOutput(Coo()), SparseOutput(Bsr())}, {}};
  const auto bytes = Encode(outcome);
  ByteReader in(bytes);
  Outcome back;
  ASSERT_TRUE(DecodeOutcome(in, back));
  EXPECT_TRUE(in.done());
  EXPECT_EQ(back, outcome);
  EXPECT_EQ(OutputHandles(back), 3u);
  EXPECT_TRUE(HasSparse(back));
  EXPECT_FALSE(HasSparse(Outcome{}));
}

TEST(SparseWire, RefusesEveryTruncation) {
  const auto signature = Encode(Of({Sparse(Bsr()), Sparse(Coo())}));
  for (size_t size = 0; size < signature.size(); ++size)
    EXPECT_FALSE(DecodeSignature(std::span(signature).first(size)).ok()) << size;
  const auto outcome = Encode(Outcome{{SparseOutput(Bsr())}, {}});
  for (size_t size = 0; size < outcome.size(); ++size)
    EXPECT_FALSE(Decodes(std::span<const std::byte>(outcome).first(size))) << size;
}

TEST(SparseWire, RefusesLayoutsThatAreNotSparse) {
  for (const Layout layout : {Layout::kStrided, Layout::kJagged, static_cast<Layout>(kLayoutCount)}) {
    ExpectRefused(Coo(), [&](SparseShape& shape) { shape.layout = layout; });
  }
}

TEST(SparseWire, RefusesShapesThatContradictThemselves) {
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.dense_dim = 0; });
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.sparse_dim = 255; });
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.sizes.push_back(1); });
  ExpectRefused(Bsr(), [](SparseShape& shape) { shape.sparse_dim = 1; });
  ExpectRefused(Bsr(), [](SparseShape& shape) { shape.dense_dim = 2; });
  ExpectRefused(Bsr(), [](SparseShape& shape) { shape.coalesced = true; });
}

TEST(SparseWire, RefusesSizesThatNoTensorHas) {
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.sizes[0] = -1; });
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.sizes = {kHuge, 1, 6}; });
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.sizes = {kHuge, kHuge, kHuge}; });
  ExpectRefused(Bsr(), [](SparseShape& shape) { shape.sizes.assign(kMaxDimensions + 1, 1); });
  Argument empty = Sparse(Coo());
  empty.sparse.sizes = {kHuge, kHuge, 0};
  EXPECT_TRUE(Decodes(empty)) << "it has no elements";
}

TEST(SparseWire, RefusesUnknownTypesAndFlags) {
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.dtype = DType::kUndefined; });
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.dtype = static_cast<DType>(kDTypeCount); });
  ExpectRefused(Coo(), [](SparseShape& shape) { shape.dtype = DType::kFloat64; });  // not that of the values
  auto bytes = Encode(Of({Sparse(Coo())}));
  constexpr size_t kFlags = 12 + 1 + 2;
  ASSERT_EQ(bytes[kFlags], std::byte{1});
  bytes[kFlags] = std::byte{2};
  EXPECT_FALSE(DecodeSignature(bytes).ok());
}

TEST(SparseWire, RefusesAnotherNumberOfComponents) {
  Argument argument = Sparse(Coo());
  argument.list.pop_back();
  EXPECT_FALSE(Decodes(argument));
  argument = Sparse(Coo());
  argument.sparse.layout = Layout::kSparseCsr;
  EXPECT_FALSE(Decodes(argument));
  argument = Sparse(Bsr());
  argument.list.push_back(argument.list.back());
  EXPECT_FALSE(Decodes(argument)) << "the last is no argument of its own";
}

TEST(SparseWire, RefusesComponentsOfOtherKinds) {
  for (const ArgTag tag : {ArgTag::kNone, ArgTag::kHostTensor, ArgTag::kInlineTensor, ArgTag::kSparseTensor}) {
    Argument argument = Sparse(Coo());
    argument.list[0].tag = tag;
    EXPECT_FALSE(Decodes(argument)) << static_cast<int>(tag);
  }
  for (const OutputTag tag : {OutputTag::kUndefined, OutputTag::kNone, OutputTag::kSparse}) {
    Output output = SparseOutput(Coo());
    output.list[1].tag = tag;
    EXPECT_FALSE(Decodes(output)) << static_cast<int>(tag);
  }
}

TEST(SparseWire, RefusesComponentsOnSeveralDevices) {
  Argument argument = Sparse(Bsr());
  argument.list[1].tensor.device = 1;
  EXPECT_FALSE(Decodes(argument));
  Output output = SparseOutput(Bsr());
  output.list[1].geometry.device = 1;
  EXPECT_FALSE(Decodes(output));
}

TEST(SparseWire, IsNoItemOfAResultsList) {
  Output list;
  list.tag = OutputTag::kList;
  list.list = {SparseOutput(Coo())};
  EXPECT_FALSE(Decodes(list));
}

TEST(SparseWire, IsNeverPredicted) {
  Signature signature = Of({Sparse(Coo())});
  signature.predicted = true;
  EXPECT_FALSE(DecodeSignature(Encode(signature)).ok()) << "of a sparse argument";
  signature = Of({Sparse(Coo()).list[0], Sparse(Coo()).list[1]});
  signature.predicted = true;
  EXPECT_TRUE(DecodeSignature(Encode(signature)).ok());
  signature.expected.outputs = {SparseOutput(Coo())};
  EXPECT_FALSE(DecodeSignature(Encode(signature)).ok()) << "a sparse result";
}

}  // namespace
}  // namespace flagos
