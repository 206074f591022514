// SPDX-License-Identifier: Apache-2.0
// Types of operators' parameters, and which of the wire's arguments fit them. What is pushed to a kernel has been
// checked against its schema, so that no number of a client is ever taken for something else.
#pragma once

#include <ATen/core/function_schema.h>

#include <optional>

#include "proto/wire/signature.h"

namespace flagos::torch_host {

struct Parameter {
  enum class Base : uint8_t {
    kTensor,
    kScalar,
    kInt,
    kDouble,
    kBool,
    kString,
    kDevice,
    kDType,
    kLayout,
    kMemoryFormat,
    kGenerator
  };
  Base base = Base::kTensor;
  bool optional = false;  // None is allowed
  bool list = false;
  bool optional_items = false;  // of a list: None is allowed in it
};

// Nothing for types that the wire cannot carry: storages, streams, names, custom classes.
std::optional<Parameter> ParameterOf(const c10::Argument& argument);
bool SupportedParameters(const c10::FunctionSchema& schema);

// Whether an argument of this tag may be given for the parameter.
bool Fits(const Parameter& parameter, ArgTag tag);

}  // namespace flagos::torch_host
