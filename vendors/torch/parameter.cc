// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/parameter.h"

#include <ATen/core/jit_type.h>

#include <algorithm>

namespace flagos::torch_host {
namespace {

std::optional<Parameter::Base> BaseOf(c10::TypeKind kind) {
  using Base = Parameter::Base;
  switch (kind) {
    case c10::TypeKind::TensorType: return Base::kTensor;
    case c10::TypeKind::NumberType: return Base::kScalar;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return Base::kInt;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType: return Base::kDouble;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType: return Base::kBool;
    case c10::TypeKind::StringType: return Base::kString;
    case c10::TypeKind::DeviceObjType: return Base::kDevice;
    case c10::TypeKind::ScalarTypeType: return Base::kDType;
    case c10::TypeKind::LayoutType: return Base::kLayout;
    case c10::TypeKind::MemoryFormatType: return Base::kMemoryFormat;
    case c10::TypeKind::GeneratorType: return Base::kGenerator;
    default: return std::nullopt;
  }
}

bool FitsList(const Parameter& parameter, ArgTag tag) {
  switch (parameter.base) {
    case Parameter::Base::kTensor:
      return tag == (parameter.optional_items ? ArgTag::kOptionalTensorList : ArgTag::kTensorList);
    case Parameter::Base::kScalar: return tag == ArgTag::kScalarList;
    case Parameter::Base::kInt: return tag == ArgTag::kIntList;
    case Parameter::Base::kDouble: return tag == ArgTag::kDoubleList;
    case Parameter::Base::kBool: return tag == ArgTag::kBoolList;
    default: return false;
  }
}

}  // namespace

std::optional<Parameter> ParameterOf(const c10::Argument& argument) {
  Parameter parameter;
  const c10::Type* type = argument.real_type().get();
  if (type->kind() == c10::TypeKind::OptionalType) {
    parameter.optional = true;
    type = type->expectRef<c10::OptionalType>().getElementType().get();
  }
  if (type->kind() == c10::TypeKind::ListType) {
    parameter.list = true;
    type = type->expectRef<c10::ListType>().getElementType().get();
    if (type->kind() == c10::TypeKind::OptionalType) {
      parameter.optional_items = true;
      type = type->expectRef<c10::OptionalType>().getElementType().get();
    }
  }
  const auto base = BaseOf(type->kind());
  if (!base) return std::nullopt;
  parameter.base = *base;
  return parameter;
}

bool SupportedParameters(const c10::FunctionSchema& schema) {
  return !schema.is_vararg() && std::ranges::all_of(schema.arguments(), [](const c10::Argument& argument) {
    return ParameterOf(argument).has_value();
  });
}

bool Fits(const Parameter& parameter, ArgTag tag) {
  // An undefined tensor is sent as None too.
  if (tag == ArgTag::kNone) {
    return parameter.optional || (parameter.base == Parameter::Base::kTensor && !parameter.list);
  }
  if (parameter.list) return FitsList(parameter, tag);
  switch (parameter.base) {
    case Parameter::Base::kTensor:
      return tag == ArgTag::kTensor || tag == ArgTag::kHostScalar || tag == ArgTag::kHostTensor ||
             tag == ArgTag::kInlineTensor || tag == ArgTag::kSparseTensor;
    case Parameter::Base::kScalar: return tag == ArgTag::kScalar || tag == ArgTag::kFixedScalar;
    case Parameter::Base::kInt: return tag == ArgTag::kInt;
    case Parameter::Base::kDouble: return tag == ArgTag::kDouble;
    case Parameter::Base::kBool: return tag == ArgTag::kBool;
    case Parameter::Base::kString: return tag == ArgTag::kString;
    case Parameter::Base::kDevice: return tag == ArgTag::kDevice;
    case Parameter::Base::kDType: return tag == ArgTag::kDType;
    case Parameter::Base::kLayout: return tag == ArgTag::kLayout;
    case Parameter::Base::kMemoryFormat: return tag == ArgTag::kMemoryFormat;
    case Parameter::Base::kGenerator: return tag == ArgTag::kGenerator;
  }
  return false;
}

}  // namespace flagos::torch_host
