// SPDX-License-Identifier: Apache-2.0
// Operators on lists of tensors: those in place return nothing, so that only what they would refuse has to be known.
#include "client/forward/predict/rules.h"

namespace flagos::client {
namespace {

// Lists of one length; at each place tensors of one geometry and data type, all dense.
bool ListsMatch(Arguments arguments, Outcome&) {
  const auto first = arguments[0].toListRef();
  for (const c10::IValue& argument : arguments) {
    if (argument.isNone()) continue;
    if (argument.isTensor()) {
      if (argument.toTensor().dim() != 0) return false;
      continue;
    }
    if (!argument.isList()) continue;
    const auto list = argument.toListRef();
    if (list.size() != first.size()) return false;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].isTensor()) continue;
      const at::Tensor& tensor = list[i].toTensor();
      const at::Tensor& like = first[i].toTensor();
      if (tensor.sizes() != like.sizes() || tensor.dtype() != like.dtype() || !tensor.is_non_overlapping_and_dense())
        return false;
      if (!tensor.is_floating_point()) return false;
    }
  }
  return true;
}

}  // namespace

void AddMultiTensorRules(PredictorRows& rows) {
  for (const char* const name : {"add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow"}) {
    for (const char* const overload : {"Scalar", "List", "ScalarList"}) {
      rows.emplace_back(std::string("aten::_foreach_") + name + "_." + overload, &ListsMatch);
    }
  }
  for (const char* const name : {"addcmul", "addcdiv", "lerp"}) {
    for (const char* const overload : {"Scalar", "List", "ScalarList"}) {
      rows.emplace_back(std::string("aten::_foreach_") + name + "_." + overload, &ListsMatch);
    }
  }
  for (const char* const name : {"sqrt", "neg", "abs", "exp", "reciprocal", "zero", "sign", "copy"}) {
    rows.emplace_back(std::string("aten::_foreach_") + name + "_", &ListsMatch);
  }
}

}  // namespace flagos::client
