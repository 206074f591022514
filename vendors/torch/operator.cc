// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/operator.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "vendors/torch/parameter.h"
#include "vendors/torch/sparse.h"

namespace flagos::torch_host {
namespace {

// Namespaces of PyTorch whose operators take packed weights, quantized tensors or process groups, or look at the
// process itself.
constexpr std::array<std::string_view, 12> kForeignNamespaces = {
    "quantized", "_quantized", "quantization", "onednn",    "mkldnn",   "mkldnn_prepacked",
    "mkl",       "sparse",     "c10d",         "prepacked", "profiler", "xnnpack"};
// Operators that read files of the executor's machine or write to its log, with what the client chooses.
constexpr std::array<std::string_view, 2> kOfTheProcess = {"aten::_print", "aten::from_file"};

// What callBoxed would run on the device, on dense tensors or on sparse ones, without falling back to autograd's
// decompositions.
bool HasKernel(const c10::OperatorHandle& op, c10::DispatchKey key) {
  return op.hasKernelForDispatchKey(key) || op.hasKernelForDispatchKey(SparseKey(key, Layout::kSparse)) ||
         op.hasKernelForDispatchKey(SparseKey(key, Layout::kSparseCsr)) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

bool HasGenerator(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    const auto parameter = ParameterOf(argument);
    return parameter && parameter->base == Parameter::Base::kGenerator;
  });
}

}  // namespace

bool IsAllowed(const c10::OperatorName& name) {
  const std::string_view full = name.name;
  return std::ranges::find(kForeignNamespaces, full.substr(0, full.find("::"))) == kForeignNamespaces.end() &&
         std::ranges::find(kOfTheProcess, full) == kOfTheProcess.end() && !full.starts_with("aten::_test_") &&
         !full.starts_with("aten::quantized_");
}

Result<Operator> FindOperator(const OperatorDefinition& definition, c10::DispatchKey key) {
  const c10::OperatorName name{definition.name, definition.overload};
  const std::string full = FullOperatorName(name.name, name.overload_name);
  const auto handle = c10::Dispatcher::singleton().findSchema(name);
  if (!handle || !HasKernel(*handle, key) || !IsAllowed(name)) {
    return MakeError(ErrorCode::kNotImplemented,
                     "the executor's PyTorch has no operator '" + full +
                         "' for this device; load the library that defines it there, or run it on the CPU");
  }
  const c10::FunctionSchema& schema = handle->schema();
  if (!SupportedParameters(schema)) {
    return MakeError(ErrorCode::kNotImplemented,
                     "operator '" + full + "' takes arguments of a type that flagos cannot send: " + toString(schema));
  }
  if (schema.arguments().size() != definition.arguments || schema.returns().size() != definition.returns.size()) {
    return MakeError(ErrorCode::kNotImplemented,
                     "operator '" + full + "' differs between the client's PyTorch and the executor's, which has " +
                         toString(schema) + "; use versions that agree");
  }
  Operator op{*handle, full, definition.returns, {}, {}};
  for (const c10::Argument& argument : schema.arguments()) {
    op.written.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
    op.resizable.push_back(argument.is_out());
  }
  op.dynamic = handle->hasTag(at::Tag::dynamic_output_shape) || handle->hasTag(at::Tag::data_dependent_output);
  op.draws_unasked = handle->hasTag(at::Tag::nondeterministic_seeded) && !HasGenerator(schema);
  // Of PyTorch's own operators the tag names those that change a tensor instead of its values.
  op.keeps_tensors =
      full.starts_with("aten::") && !handle->hasTag(at::Tag::inplace_view) && definition.name != "aten::set_data";
  // Whether an argument requires a gradient is known in the client only.
  op.asks_for_gradients = definition.name == "aten::_sparse_mm_reduce_impl";
  op.moves_bytes = definition.name == "aten::copy_" || definition.name == "aten::_foreach_copy_";
  return op;
}

bool HasOperator(const std::string& name, c10::DispatchKey key) {
  const size_t colon = name.find("::");
  const size_t dot = name.find('.', colon == std::string::npos ? 0 : colon);
  const c10::OperatorName parts{name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)};
  const auto handle = c10::Dispatcher::singleton().findSchema(parts);
  return handle && HasKernel(*handle, key) && IsAllowed(parts) && SupportedParameters(handle->schema());
}

}  // namespace flagos::torch_host
