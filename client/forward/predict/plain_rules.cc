// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element but are no structured kernels, fills and copies.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/TypeProperties.h>

#include "client/forward/predict/rules.h"
#include "client/forward/predict/structured.h"

namespace flagos::client {
namespace {

// TensorIterator on its own, in the shape of a structured kernel.
struct Elementwise : at::TensorIteratorBase {
  void build_from(std::span<const at::Tensor> inputs, c10::ScalarType dtype) {
    at::TensorIteratorConfig config;
    config.check_all_same_dtype(false).add_owned_output(maybe_get_output(0));
    for (const at::Tensor& input : inputs) config.add_owned_const_input(input);
    config.declare_static_dtype_and_device(dtype, c10::kMeta);
    build(config);
  }
};

}  // namespace

Output ElementwiseOutput(Arguments arguments, std::initializer_list<size_t> inputs, c10::ScalarType dtype) {
  c10::SmallVector<at::Tensor, 4> twins;
  at::native::ResultTypeState promotion;
  for (const size_t input : inputs) {
    const at::Tensor& tensor = TensorAt(arguments, input);
    TORCH_CHECK(tensor.defined(), "an operand is missing");
    promotion = at::native::update_result_type_state(tensor, promotion);
    twins.push_back(MetaTwin(*tensor.unsafeGetTensorImpl()));
  }
  if (dtype == c10::ScalarType::Undefined) dtype = at::native::result_type(promotion);
  MetaOutputs outputs;
  Recorder<Elementwise> recorder(outputs);
  recorder.build_from({twins.data(), twins.size()}, dtype);
  return NewOutput(outputs[0]);
}

namespace {

template <size_t... Inputs>
bool Promoted(Arguments arguments, Outcome& outcome) {
  outcome.outputs.push_back(ElementwiseOutput(arguments, {Inputs...}, c10::ScalarType::Undefined));
  return true;
}

template <size_t... Inputs>
bool SameTypeAsFirst(Arguments arguments, Outcome& outcome) {
  constexpr size_t kFirst = std::get<0>(std::tuple(Inputs...));
  outcome.outputs.push_back(ElementwiseOutput(arguments, {Inputs...}, TensorAt(arguments, kFirst).scalar_type()));
  return true;
}

template <size_t... Inputs>
bool Bools(Arguments arguments, Outcome& outcome) {
  outcome.outputs.push_back(ElementwiseOutput(arguments, {Inputs...}, c10::ScalarType::Bool));
  return true;
}

// Of a complex tensor the absolute value and the angle are real. Angles of integers are of the default data type.
bool Real(Arguments arguments, Outcome& outcome) {
  outcome.outputs.push_back(
      ElementwiseOutput(arguments, {0}, c10::toRealValueType(TensorAt(arguments, 0).scalar_type())));
  return true;
}

bool Angle(Arguments arguments, Outcome& outcome) {
  const at::Tensor& self = TensorAt(arguments, 0);
  return (self.is_floating_point() || self.is_complex()) && Real(arguments, outcome);
}

bool Where(Arguments arguments, Outcome& outcome) {
  const at::native::ResultTypeState promotion = at::native::update_result_type_state(
      TensorAt(arguments, 2), at::native::update_result_type_state(TensorAt(arguments, 1), {}));
  outcome.outputs.push_back(ElementwiseOutput(arguments, {0, 1, 2}, at::native::result_type(promotion)));
  return true;
}

// Writes each element of the first argument, whatever else there is.
bool Fill(Arguments arguments, Outcome&) {
  const at::Tensor& self = TensorAt(arguments, 0);
  return WritesInPlace(arguments, 0, self.sizes(), self.scalar_type(), true);
}

// fill_ with a number that the tensor cannot hold is an error at the call.
bool FillScalar(Arguments arguments, Outcome& outcome) {
  const at::Tensor& self = TensorAt(arguments, 0);
  if (arguments[1].isComplexDouble() && !self.is_complex()) return false;
  return (self.is_floating_point() || self.is_complex() || self.scalar_type() == c10::ScalarType::Bool ||
          self.scalar_type() == c10::ScalarType::Long || self.scalar_type() == c10::ScalarType::Int) &&
         Fill(arguments, outcome);
}

bool Copy(Arguments arguments, Outcome&) {
  const at::Tensor& self = TensorAt(arguments, 0);
  const at::Tensor& source = TensorAt(arguments, 1);
  return at::is_expandable_to(source.sizes(), self.sizes()) && !(source.is_complex() && !self.is_complex()) &&
         WritesInPlace(arguments, 0, self.sizes(), self.scalar_type(), true);
}

bool MaskedFillInPlace(Arguments arguments, Outcome& outcome) {
  const at::Tensor& self = TensorAt(arguments, 0);
  const at::Tensor& mask = TensorAt(arguments, 1);
  return mask.scalar_type() == c10::ScalarType::Bool && at::is_expandable_to(mask.sizes(), self.sizes()) &&
         self.is_floating_point() && !arguments[2].isComplexDouble() && !arguments[2].isTensor() &&
         Fill(arguments, outcome);
}

bool Dropout(Arguments arguments, Outcome& outcome) {
  const at::Tensor& input = TensorAt(arguments, 0);
  outcome.outputs.push_back(OutputLike(input));
  outcome.outputs.push_back(OutputLike(input, c10::ScalarType::Bool));
  return input.numel() != 0 && input.is_floating_point() && (arguments[2].isNone() || arguments[2].toBool());
}

}  // namespace

void AddPlainRules(PredictorRows& rows) {
  rows.insert(rows.end(), {
                              {"aten::relu", &SameTypeAsFirst<0>},
                              {"aten::hardtanh", &SameTypeAsFirst<0>},
                              {"aten::hardswish", &SameTypeAsFirst<0>},
                              {"aten::_prelu_kernel", &Promoted<0, 1>},
                              {"aten::logical_and", &Bools<0, 1>},
                              {"aten::logical_or", &Bools<0, 1>},
                              {"aten::logical_xor", &Bools<0, 1>},
                              {"aten::logical_not", &Bools<0>},
                              {"aten::abs", &Real},
                              {"aten::angle", &Angle},
                              {"aten::where.self", &Where},
                              {"aten::native_dropout", &Dropout},
                              {"aten::zero_", &Fill},
                              {"aten::fill_.Scalar", &FillScalar},
                              {"aten::fill_.Tensor", &Fill},
                              {"aten::masked_fill_.Scalar", &MaskedFillInPlace},
                              {"aten::copy_", &Copy},
                          });
}

}  // namespace flagos::client
