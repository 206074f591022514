// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "proto/wire/records.h"
#include "proto/wire/signature.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

using testing::Bytes;
using testing::Join;

Argument Tensor(ArgTag tag, std::vector<int64_t> sizes = {}) {
  Argument argument;
  argument.tag = tag;
  argument.tensor.dtype = DType::kFloat32;
  argument.tensor.strides.assign(sizes.size(), 1);
  argument.tensor.sizes = std::move(sizes);
  return argument;
}

Argument Scalar(ArgTag tag, ScalarKind kind) {
  Argument argument;
  argument.tag = tag;
  argument.scalar = kind;
  return argument;
}

Argument Integer(ArgTag tag, int64_t value) {
  Argument argument;
  argument.tag = tag;
  argument.integer = value;
  return argument;
}

Argument List(ArgTag tag, std::vector<Argument> list) {
  Argument argument;
  argument.tag = tag;
  argument.list = std::move(list);
  return argument;
}

// One argument of every tag but kSparseTensor, which is never predicted: proto_sparse_test.cc.
Signature Everything() {
  Signature signature;
  signature.op = 11;
  signature.context = 2;
  Argument fixed = Scalar(ArgTag::kFixedScalar, ScalarKind::kComplex);
  fixed.real = 1.25;
  fixed.imaginary = -2;
  Argument fixed_int = Scalar(ArgTag::kFixedScalar, ScalarKind::kInt);
  fixed_int.integer = -9;
  Argument text;
  text.tag = ArgTag::kString;
  text.text = "bilinear";
  Argument ints;
  ints.tag = ArgTag::kIntList;
  ints.integers = {1, -2, 3};
  Argument bools = ints;
  bools.tag = ArgTag::kBoolList;
  bools.integers = {1, 0};
  Argument reals;
  reals.tag = ArgTag::kDoubleList;
  reals.reals = {0.5};
  Argument scalars;
  scalars.tag = ArgTag::kScalarList;
  scalars.scalars = {ScalarKind::kInt, ScalarKind::kComplex};
  Argument device = Integer(ArgTag::kDevice, 1);
  device.device = DeviceKind::kFlagos;
  signature.arguments = {
      Argument{},
      Tensor(ArgTag::kTensor, {2, 3}),
      Tensor(ArgTag::kHostScalar),
      Tensor(ArgTag::kHostTensor, {5}),
      Tensor(ArgTag::kInlineTensor, {3}),
      Scalar(ArgTag::kScalar, ScalarKind::kDouble),
      Scalar(ArgTag::kScalar, ScalarKind::kComplex),
      fixed,
      fixed_int,
      Integer(ArgTag::kInt, -1),
      Integer(ArgTag::kDouble, 0),
      Integer(ArgTag::kBool, 1),
      text,
      ints,
      reals,
      bools,
      List(ArgTag::kTensorList, {Tensor(ArgTag::kTensor, {1}), Tensor(ArgTag::kHostScalar)}),
      List(ArgTag::kOptionalTensorList, {Argument{}, Tensor(ArgTag::kTensor, {4})}),
      scalars,
      device,
      Integer(ArgTag::kDType, static_cast<int64_t>(DType::kInt64)),
      Integer(ArgTag::kLayout, 0),
      Integer(ArgTag::kMemoryFormat, 2),
      Integer(ArgTag::kGenerator, 0),
  };
  return signature;
}

std::vector<std::byte> Encode(const Signature& signature) {
  ByteWriter out;
  EncodeSignature(out, signature);
  return {out.bytes().begin(), out.bytes().end()};
}

// Whether a signature of one argument with these bytes decodes.
template <class... Values>
bool ArgumentDecodes(ArgTag tag, Values... values) {
  return DecodeSignature(Join(Bytes(uint32_t{1}, uint32_t{0}, uint16_t{1}, uint16_t{0}, tag), Bytes(values...))).ok();
}

bool Decodes(std::vector<Argument> arguments) {
  Signature signature;
  signature.arguments = std::move(arguments);
  return DecodeSignature(Encode(signature)).ok();
}

bool Predicts(const Outcome& outcome) {
  Signature signature;
  signature.arguments = {Tensor(ArgTag::kTensor, {4}), Tensor(ArgTag::kHostScalar)};
  signature.predicted = true;
  signature.expected = outcome;
  return DecodeSignature(Encode(signature)).ok();
}

TEST(Signature, RoundTripsEveryTag) {
  Signature signature = Everything();
  for (const bool predicted : {false, true}) {
    signature.predicted = predicted;
    const auto bytes = Encode(signature);
    const auto back = DecodeSignature(bytes);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(Encode(back.value()), bytes);
    EXPECT_EQ(back.value().op, 11u);
    EXPECT_EQ(back.value().context, 2u);
    EXPECT_EQ(back.value().predicted, predicted);
  }
}

TEST(Signature, TellsWhatACallCarries) {
  const auto back = DecodeSignature(Encode(Everything()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().inputs, 3u);
  // Two host scalars, an arena range, 12 inline bytes, two scalars, a double, a list of two scalars, a generator.
  EXPECT_EQ(back.value().free_bytes, 8u + 8 + 24 + 16 + 8 + 16 + 8 + 24 + 8);
}

TEST(Signature, KeepsValues) {
  const auto back = DecodeSignature(Encode(Everything()));
  ASSERT_TRUE(back.ok());
  const auto& arguments = back.value().arguments;
  ASSERT_EQ(arguments.size(), Everything().arguments.size());
  EXPECT_EQ(arguments[1].tensor, Everything().arguments[1].tensor);
  EXPECT_EQ(arguments[7].real, 1.25);
  EXPECT_EQ(arguments[7].imaginary, -2);
  EXPECT_EQ(arguments[8].integer, -9);
  EXPECT_EQ(arguments[12].text, "bilinear");
  EXPECT_EQ(arguments[13].integers, (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(arguments[14].reals, std::vector<double>{0.5});
  EXPECT_EQ(arguments[17].list[0].tag, ArgTag::kNone);
  EXPECT_EQ(arguments[19].device, DeviceKind::kFlagos);
}

TEST(Signature, RefusesEveryTruncation) {
  const auto bytes = Encode(Everything());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto back = DecodeSignature(std::span(bytes).first(size));
    ASSERT_FALSE(back.ok()) << size;
    EXPECT_EQ(back.error().code, ErrorCode::kMalformed);
  }
}

TEST(Signature, MayBePaddedToEightBytes) {
  auto bytes = Encode(Everything());
  bytes.resize(bytes.size() + 7);
  EXPECT_TRUE(DecodeSignature(bytes).ok());
  bytes.resize(bytes.size() + 1);
  EXPECT_FALSE(DecodeSignature(bytes).ok());
}

TEST(Signature, RefusesUnknownNumbers) {
  EXPECT_FALSE(ArgumentDecodes(static_cast<ArgTag>(kArgTagCount)));
  EXPECT_FALSE(ArgumentDecodes(ArgTag::kScalar, kScalarKindCount));
  EXPECT_FALSE(ArgumentDecodes(ArgTag::kFixedScalar, kScalarKindCount, 0.0, 0.0));
  EXPECT_FALSE(ArgumentDecodes(ArgTag::kScalarList, uint32_t{1}, kScalarKindCount));
  EXPECT_FALSE(ArgumentDecodes(ArgTag::kDevice, uint8_t{3}, uint8_t{0}));
  EXPECT_FALSE(ArgumentDecodes(ArgTag::kDType, kDTypeCount));
  EXPECT_FALSE(ArgumentDecodes(ArgTag::kLayout, kLayoutCount));
  EXPECT_FALSE(ArgumentDecodes(ArgTag::kMemoryFormat, kMemoryFormatCount));
  EXPECT_TRUE(ArgumentDecodes(ArgTag::kDevice, uint8_t{1}, uint8_t{255}));
  EXPECT_TRUE(ArgumentDecodes(ArgTag::kMemoryFormat, uint8_t{kMemoryFormatCount - 1}));
  EXPECT_FALSE(DecodeSignature(Bytes(uint32_t{1}, uint32_t{0}, uint16_t{0}, uint16_t{2})).ok())
      << "predicted is 0 or 1";
}

TEST(Signature, RefusesListsThatTheBytesCannotHold) {
  for (const ArgTag tag : {ArgTag::kIntList, ArgTag::kDoubleList, ArgTag::kBoolList, ArgTag::kTensorList,
                           ArgTag::kOptionalTensorList, ArgTag::kScalarList, ArgTag::kString}) {
    EXPECT_TRUE(ArgumentDecodes(tag, uint32_t{0})) << static_cast<int>(tag);
    EXPECT_FALSE(ArgumentDecodes(tag, uint32_t{2}, uint8_t{0})) << static_cast<int>(tag);
    EXPECT_FALSE(ArgumentDecodes(tag, uint32_t{0xffffffff})) << static_cast<int>(tag);
  }
  EXPECT_FALSE(DecodeSignature(Bytes(uint32_t{1}, uint32_t{0}, uint16_t{0xffff}, uint16_t{0})).ok());
}

TEST(Signature, RefusesAListThatIsTooLong) {
  auto bytes = Bytes(uint32_t{1}, uint32_t{0}, uint16_t{1}, uint16_t{0}, ArgTag::kBoolList, kMaxListLength);
  const size_t head = bytes.size();
  bytes.resize(head + kMaxListLength);
  EXPECT_TRUE(DecodeSignature(bytes).ok());
  const uint32_t more = kMaxListLength + 1;
  std::memcpy(bytes.data() + head - sizeof more, &more, sizeof more);
  bytes.resize(head + more);
  EXPECT_FALSE(DecodeSignature(bytes).ok());
}

TEST(Signature, RefusesListsOfAnythingButTensors) {
  EXPECT_TRUE(Decodes({List(ArgTag::kOptionalTensorList, {Argument{}})}));
  EXPECT_FALSE(Decodes({List(ArgTag::kTensorList, {Argument{}})}));
  EXPECT_FALSE(Decodes({List(ArgTag::kTensorList, {Integer(ArgTag::kInt, 1)})}));
  EXPECT_FALSE(Decodes({List(ArgTag::kOptionalTensorList, {List(ArgTag::kTensorList, {})})}));
}

TEST(Signature, RefusesHostScalarsThatAreNone) {
  EXPECT_FALSE(Decodes({Tensor(ArgTag::kHostScalar, {1})}));
  Argument moved = Tensor(ArgTag::kHostScalar);
  moved.tensor.offset = 1;
  EXPECT_FALSE(Decodes({moved}));
}

TEST(Signature, RefusesInlineTensorsThatAreLarge) {
  EXPECT_TRUE(Decodes({Tensor(ArgTag::kInlineTensor, {16384})}));
  EXPECT_FALSE(Decodes({Tensor(ArgTag::kInlineTensor, {16385})}));
}

TEST(Signature, RefusesMoreInputsThanACallCanName) {
  const std::vector<Argument> half(32768, Tensor(ArgTag::kTensor));
  std::vector<Argument> fewer(half.begin(), half.end() - 1);
  EXPECT_TRUE(Decodes({List(ArgTag::kTensorList, half), List(ArgTag::kTensorList, fewer)}));
  EXPECT_FALSE(Decodes({List(ArgTag::kTensorList, half), List(ArgTag::kTensorList, half)}));
}

TEST(Signature, APredictionSpeaksOfInputsThatThereAre) {
  Output alias;
  alias.tag = OutputTag::kAlias;
  alias.geometry = Tensor(ArgTag::kTensor, {4}).tensor;
  alias.storage_bytes = 16;
  EXPECT_TRUE(Predicts({{alias}, {}}));
  EXPECT_TRUE(Predicts({{}, {{0, alias.geometry, 16}}}));
  EXPECT_FALSE(Predicts({{}, {{1, alias.geometry, 16}}})) << "the host scalar is no input";
  alias.alias = 1;
  EXPECT_FALSE(Predicts({{alias}, {}}));
  Output list;
  list.tag = OutputTag::kList;
  list.list = {alias};
  EXPECT_FALSE(Predicts({{list}, {}}));
}

}  // namespace
}  // namespace flagos
