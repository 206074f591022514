// SPDX-License-Identifier: Apache-2.0
// What the client writes of a call is what the executor's decoder reads.
#include "client/forward/encode.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/library.h>

#include <cstring>

#include "client/forward/doubt.h"
#include "client/forward/types_key.h"
#include "client/handles.h"
#include "proto/wire/records.h"

namespace flagos::client {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kContext = 3;

// A tensor that lies on a device as far as its description goes. No session is behind it.
at::Tensor DeviceTensor(uint32_t handle, at::IntArrayRef sizes, at::IntArrayRef strides = {}, int64_t offset = 0,
                        at::ScalarType dtype = at::kFloat, c10::DeviceIndex device = 0) {
  const c10::Device on(c10::kPrivateUse1, device);
  c10::DataPtr data(nullptr, MakeContext(1, handle), &FreeHandle, on);
  c10::Storage storage(c10::Storage::use_byte_size_t(), 1 << 20, std::move(data));
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
  if (strides.empty()) {
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  } else {
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  }
  return tensor;
}

struct Written {
  Signature signature;
  std::vector<uint32_t> inputs;
  std::vector<std::byte> free_bytes;
  int device = -1;

  template <class T>
  T free_value(size_t offset) const {
    T value;
    std::memcpy(&value, free_bytes.data() + offset, sizeof value);
    return value;
  }
};

Written Write(const char* name, const char* overload, const std::vector<c10::IValue>& arguments) {
  CallBufferLease lease;
  EncodeCall(Operator::Find(name, overload), kContext, arguments, *lease);
  Written written;
  auto signature = DecodeSignature((*lease).signature.span());
  EXPECT_TRUE(signature.ok()) << signature.error().message;
  written.signature = std::move(signature.value());
  written.inputs.assign((*lease).inputs.span().begin(), (*lease).inputs.span().end());
  written.free_bytes.assign((*lease).free_bytes.span().begin(), (*lease).free_bytes.span().end());
  written.device = (*lease).device;
  EXPECT_EQ(written.signature.inputs, written.inputs.size());
  EXPECT_EQ(written.signature.free_bytes, written.free_bytes.size());
  EXPECT_EQ(written.signature.context, kContext);
  EXPECT_FALSE(written.signature.predicted);
  return written;
}

TEST(EncodeTest, TensorHasGeometryAndHandle) {
  const at::Tensor view = DeviceTensor(7, {2, 3}, {1, 4}, 5, at::kHalf, 1);
  const Written written = Write("aten::add", "Tensor", {view, view, 2});
  const Argument& self = written.signature.arguments[0];
  EXPECT_EQ(self.tag, ArgTag::kTensor);
  EXPECT_EQ(self.tensor.dtype, DType::kFloat16);
  EXPECT_EQ(self.tensor.device, 1);
  EXPECT_EQ(self.tensor.offset, 5);
  EXPECT_THAT(self.tensor.sizes, ElementsAre(2, 3));
  EXPECT_THAT(self.tensor.strides, ElementsAre(1, 4));
  EXPECT_THAT(written.inputs, ElementsAre(7, 7));
  EXPECT_EQ(written.device, 1);
  EXPECT_EQ(written.signature.arguments[2].tag, ArgTag::kScalar);
  EXPECT_EQ(written.free_value<int64_t>(0), 2);
}

TEST(EncodeTest, AnOutTensorThatIsAnOperandIsMarked) {
  const at::Tensor x = DeviceTensor(7, {4}), y = DeviceTensor(8, {4});
  const Written same = Write("aten::logical_and", "out", {x, y, x});
  EXPECT_EQ(same.signature.arguments[0].tensor.flags, 0);
  EXPECT_EQ(same.signature.arguments[2].tensor.flags, kTensorSame);
  const Written other = Write("aten::logical_and", "out", {x, y, x.alias()});
  EXPECT_EQ(other.signature.arguments[2].tensor.flags, 0) << "another tensor of the same bytes";
  const Written inplace = Write("aten::add_", "Tensor", {x, x, 1});
  EXPECT_EQ(inplace.signature.arguments[0].tensor.flags, 0) << "no out= tensor";
}

TEST(EncodeTest, PythonNumberStaysAWrappedOne) {
  at::Tensor number = at::scalar_tensor(1.5, at::kDouble);
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  const Written written = Write("aten::mul", "Tensor", {DeviceTensor(1, {4}), number});
  const Argument& other = written.signature.arguments[1];
  EXPECT_EQ(other.tag, ArgTag::kHostScalar);
  EXPECT_EQ(other.tensor.flags, kTensorWrappedNumber);
  EXPECT_EQ(written.free_value<double>(0), 1.5);
}

TEST(EncodeTest, ScalarsThatDecideSizesAreInTheSignature) {
  const Written written = Write("aten::arange", "start_out", {0, 2.5, 1, DeviceTensor(1, {8})});
  EXPECT_EQ(written.signature.arguments[0].tag, ArgTag::kFixedScalar);
  EXPECT_EQ(written.signature.arguments[1].scalar, ScalarKind::kDouble);
  EXPECT_EQ(written.signature.arguments[1].real, 2.5);
  EXPECT_EQ(written.signature.arguments[2].integer, 1);
  EXPECT_TRUE(written.free_bytes.empty());
}

TEST(EncodeTest, OptionalListsAndEnums) {
  const Written sum =
      Write("aten::sum", "dim_IntList", {DeviceTensor(1, {4, 4}), c10::List<int64_t>({1, 0}), true, at::kDouble});
  EXPECT_THAT(sum.signature.arguments[1].integers, ElementsAre(1, 0));
  EXPECT_EQ(sum.signature.arguments[2].integer, 1);
  EXPECT_EQ(sum.signature.arguments[3].tag, ArgTag::kDType);
  EXPECT_EQ(static_cast<DType>(sum.signature.arguments[3].integer), DType::kFloat64);
  const Written all = Write("aten::sum", "dim_IntList", {DeviceTensor(1, {4, 4}), c10::IValue(), false, c10::IValue()});
  EXPECT_EQ(all.signature.arguments[1].tag, ArgTag::kNone);
  EXPECT_EQ(all.signature.arguments[3].tag, ArgTag::kNone);
}

TEST(EncodeTest, ListsOfTensorsAndScalars) {
  const c10::List<at::Tensor> tensors({DeviceTensor(4, {2}), DeviceTensor(9, {3})});
  const c10::List<at::Scalar> scalars({at::Scalar(1), at::Scalar(2.5)});
  const Written written = Write("aten::_foreach_add", "ScalarList", {tensors, scalars});
  ASSERT_EQ(written.signature.arguments[0].list.size(), 2u);
  EXPECT_THAT(written.signature.arguments[0].list[1].tensor.sizes, ElementsAre(3));
  EXPECT_THAT(written.inputs, ElementsAre(4, 9));
  EXPECT_THAT(written.signature.arguments[1].scalars, ElementsAre(ScalarKind::kInt, ScalarKind::kDouble));
  EXPECT_EQ(written.free_value<double>(8), 2.5);
}

TEST(EncodeTest, IndicesMayLieOnTheHost) {
  c10::List<std::optional<at::Tensor>> indices;
  indices.push_back(std::nullopt);
  indices.push_back(at::arange(3));
  const Written written = Write("aten::index", "Tensor", {DeviceTensor(2, {5, 5}), indices});
  const Argument& list = written.signature.arguments[1];
  EXPECT_EQ(list.tag, ArgTag::kOptionalTensorList);
  EXPECT_EQ(list.list[0].tag, ArgTag::kNone);
  EXPECT_EQ(list.list[1].tag, ArgTag::kInlineTensor);
  EXPECT_EQ(written.free_value<int64_t>(16), 2);
}

TEST(EncodeTest, LazyConjugationIsABit) {
  at::Tensor tensor = DeviceTensor(1, {2, 2}, {}, 0, at::kComplexFloat);
  tensor.unsafeGetTensorImpl()->_set_conj(true);
  const Written written = Write("aten::mm", "", {tensor, tensor});
  EXPECT_EQ(written.signature.arguments[0].tensor.flags, kTensorConj);
}

TEST(EncodeTest, UndefinedTensorIsNone) {
  const Written written = Write("aten::add", "Tensor", {DeviceTensor(1, {2}), at::Tensor(), 1});
  EXPECT_EQ(written.signature.arguments[1].tag, ArgTag::kNone);
}

TEST(EncodeTest, RefusesOperandsOnSeveralDevices) {
  EXPECT_THROW(Write("aten::add", "Tensor", {DeviceTensor(1, {2}), DeviceTensor(2, {2}, {}, 0, at::kFloat, 1), 1}),
               c10::Error);
  EXPECT_THROW(Write("aten::add", "Tensor", {DeviceTensor(1, {2}), at::ones(2), 1}), c10::Error);
  // A number may be read from anywhere, but not written.
  EXPECT_THROW(Write("aten::add_", "Tensor", {at::scalar_tensor(1), DeviceTensor(1, {}), 1}), c10::Error);
}

TEST(EncodeTest, RefusesWhatCannotCross) {
  const at::Tensor meta = at::empty({2}, at::device(at::kMeta));
  EXPECT_THROW(Write("aten::add", "Tensor", {DeviceTensor(1, {2}), meta, 1}), c10::NotImplementedError);
  const at::Tensor quantized = DeviceTensor(1, {2}, {}, 0, at::kQInt8);
  EXPECT_THROW(Write("aten::add", "Tensor", {quantized, DeviceTensor(1, {2}), 1}), c10::NotImplementedError);
}

bool Doubtful(const char* name, const char* overload, const std::vector<c10::IValue>& arguments) {
  CallBufferLease lease;
  Operator& op = Operator::Find(name, overload);
  EncodeCall(op, kContext, arguments, *lease);
  return IsDoubtful(op, arguments, *lease);
}

TEST(DoubtTest, WritingWhatAnotherOperandReads) {
  const at::Tensor all = DeviceTensor(1, {5});
  const auto slice = [&](int64_t from) {
    at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(all.storage()), all.key_set(), all.dtype());
    view.unsafeGetTensorImpl()->set_sizes_and_strides(at::IntArrayRef({4}), at::IntArrayRef({1}), from);
    return view;
  };
  EXPECT_TRUE(Doubtful("aten::add_", "Tensor", {slice(1), slice(0), 1}));
  EXPECT_FALSE(Doubtful("aten::add_", "Tensor", {slice(1), slice(1), 1})) << "the same elements";
  EXPECT_FALSE(Doubtful("aten::add", "Tensor", {slice(1), slice(0), 1})) << "nothing is written";
  EXPECT_FALSE(Doubtful("aten::add_", "Tensor", {DeviceTensor(1, {4}), DeviceTensor(2, {4}), 1}));
}

TEST(DoubtTest, NumbersThatAnOperandCannotHold) {
  const auto fill = [](at::ScalarType dtype, const c10::IValue& number) {
    return Doubtful("aten::fill_", "Scalar", {DeviceTensor(1, {4}, {}, 0, dtype), number});
  };
  EXPECT_FALSE(fill(at::kInt, int64_t{1}));
  EXPECT_FALSE(fill(at::kInt, (int64_t{1} << 31) - 1));
  EXPECT_TRUE(fill(at::kInt, int64_t{1} << 31));
  EXPECT_TRUE(fill(at::kInt, 1e10));
  EXPECT_FALSE(fill(at::kLong, int64_t{1} << 40));
  EXPECT_FALSE(fill(at::kByte, int64_t{-255})) << "as c10::overflows has it";
  EXPECT_TRUE(fill(at::kByte, int64_t{256}));
  EXPECT_FALSE(fill(at::kFloat, int64_t{1} << 40));
}

TEST(DoubtTest, NegativePowersOfIntegers) {
  const auto power = [](at::ScalarType dtype, int64_t exponent) {
    return Doubtful("aten::pow", "Tensor_Scalar", {DeviceTensor(1, {4}, {}, 0, dtype), exponent});
  };
  EXPECT_TRUE(power(at::kInt, -1));
  EXPECT_FALSE(power(at::kInt, 2));
  EXPECT_FALSE(power(at::kFloat, -1));
}

TEST(DoubtTest, ParametersOfADistributionUntilTheyWereAccepted) {
  const std::vector<c10::IValue> arguments = {DeviceTensor(1, {4}), -0.25, 0.75, c10::IValue()};
  Operator& op = Operator::Find("aten::uniform_", "");
  CallBufferLease lease;
  EncodeCall(op, kContext, arguments, *lease);
  EXPECT_TRUE(IsDoubtful(op, arguments, *lease));
  Accepted(op, *lease);
  EXPECT_FALSE(IsDoubtful(op, arguments, *lease));
}

TEST(TypesKeyTest, TellsWhatDecidesWhetherAKernelExists) {
  const auto key = [](const char* name, const char* overload, const std::vector<c10::IValue>& arguments) {
    return TypesKey(Operator::Find(name, overload), arguments);
  };
  const at::Tensor real = DeviceTensor(1, {4});
  const at::Tensor other_shape = DeviceTensor(2, {7, 2});
  const at::Tensor integers = DeviceTensor(1, {4}, {}, 0, at::kLong);
  const auto sum = [&](const at::Tensor& x, at::ScalarType dtype) {
    return key("aten::cumsum", "", {x, int64_t{0}, static_cast<int64_t>(dtype)});
  };
  EXPECT_EQ(sum(real, at::kDouble), sum(other_shape, at::kDouble));
  EXPECT_NE(sum(real, at::kDouble), sum(integers, at::kDouble));
  EXPECT_NE(sum(real, at::kDouble), sum(real, at::kBool));
  const auto quotient = [&](const c10::IValue& mode) { return key("aten::div", "Tensor_mode", {real, real, mode}); };
  EXPECT_NE(quotient("floor"), quotient(c10::IValue()));
  EXPECT_NE(quotient("floor"), quotient("trunc"));
  const auto pick = [&](const at::Tensor& index) {
    return key("aten::index", "Tensor", {real, std::vector<std::optional<at::Tensor>>{index}});
  };
  EXPECT_NE(pick(integers), pick(DeviceTensor(3, {4}, {}, 0, at::kBool)));
}

TEST(OperatorTest, ResultsOfForeignOperatorsMayDependOnData) {
  static auto& library =
      *new torch::Library(torch::Library::DEF, "flagos_operator_test", std::nullopt, __FILE__, __LINE__);
  library.def("pick(Tensor x) -> Tensor");
  library.def("fill_(Tensor(a!) x) -> Tensor(a!)");
  EXPECT_TRUE(Operator::Find("flagos_operator_test::pick").depends_on_data);
  EXPECT_FALSE(Operator::Find("flagos_operator_test::fill_").depends_on_data);
  EXPECT_FALSE(Operator::Find("aten::add", "Tensor").depends_on_data);
  EXPECT_TRUE(Operator::Find("aten::nonzero").depends_on_data);
}

}  // namespace
}  // namespace flagos::client
