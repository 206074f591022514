// SPDX-License-Identifier: Apache-2.0
#include "client/forward/results.h"

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <utility>

#include "client/forward/new_tensor.h"
#include "client/forward/sparse_results.h"
#include "client/forward/types.h"
#include "client/handles.h"

namespace flagos::client {
namespace {

at::Tensor TensorOn(c10::Storage&& storage, const Geometry& geometry) {
  auto tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                               c10::scalarTypeToTypeMeta(FromWire(geometry.dtype)));
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(c10::IntArrayRef(geometry.sizes), c10::IntArrayRef(geometry.strides), geometry.offset);
  if (geometry.flags != 0) [[unlikely]] {
    if ((geometry.flags & kTensorConj) != 0) impl->_set_conj(true);
    if ((geometry.flags & kTensorNeg) != 0) impl->_set_neg(true);
    if ((geometry.flags & kTensorWrappedNumber) != 0) impl->set_wrapped_number(true);
  }
  return tensor;
}

c10::Storage NewStorage(const Output& output, ResultHandles& handles) {
  return StorageOf(handles.take(output.geometry.device), output.storage_bytes);
}

c10::IValue MakeValue(const CallBuffer& buffer, const Output& output, ResultHandles& handles) {
  switch (output.tag) {
    case OutputTag::kUndefined:
    case OutputTag::kTensor:
    case OutputTag::kAlias:
    case OutputTag::kSparse: return MakeTensor(buffer, output, handles);
    case OutputTag::kList: {
      c10::List<at::Tensor> list;
      list.reserve(output.list.size());
      for (const Output& item : output.list) list.push_back(MakeTensor(buffer, item, handles));
      return list;
    }
    case OutputTag::kInt:
      if (output.integer < 0 && !buffer.tensors.empty() && buffer.tensors[0]->dtype() == c10::ScalarType::UInt64) {
        return c10::Scalar(static_cast<uint64_t>(output.integer));
      }
      return output.integer;
    case OutputTag::kDouble: return output.real;
    case OutputTag::kBool: return output.integer != 0;
    case OutputTag::kComplex: return c10::complex<double>(output.real, output.imaginary);
    case OutputTag::kDType: return FromWire(static_cast<DType>(output.integer));
    case OutputTag::kNone: return {};
  }
  return {};
}

void Resize(c10::TensorImpl* impl, const Geometry& geometry) {
  c10::StorageImpl* const storage = impl->unsafe_storage().unsafeGetStorageImpl();
  // A storage only ever grows here, and on a later call of the signature it may be larger than on the first.
  if (const uint64_t bytes = geometry.required_bytes(); bytes > storage->nbytes()) RebindAddress(*storage, bytes);
  impl->set_sizes_and_strides(c10::IntArrayRef(geometry.sizes), c10::IntArrayRef(geometry.strides), geometry.offset);
}

bool FitsReturn(ReturnKind kind, const Output& output) {
  const bool tensor = output.tag == OutputTag::kUndefined || output.tag == OutputTag::kTensor ||
                      output.tag == OutputTag::kAlias || output.tag == OutputTag::kSparse;
  switch (kind) {
    case ReturnKind::kTensor: return tensor;
    case ReturnKind::kTensorList: return output.tag == OutputTag::kList;
    case ReturnKind::kValue: return !tensor;
    case ReturnKind::kMutatedArgument: return false;
  }
  return false;
}

bool FitsInputs(const CallBuffer& buffer, const Output& output) {
  if (output.tag == OutputTag::kAlias && output.alias >= buffer.tensors.size()) return false;
  return std::ranges::all_of(output.list, [&](const Output& item) { return FitsInputs(buffer, item); });
}

}  // namespace

bool Fits(const Operator& op, const CallBuffer& buffer, const Outcome& outcome) {
  size_t next = 0;
  for (const ReturnPlan& plan : op.returns) {
    if (plan.kind == ReturnKind::kMutatedArgument) continue;
    if (next == outcome.outputs.size()) return false;
    const Output& output = outcome.outputs[next++];
    if (!FitsReturn(plan.kind, output) || !FitsInputs(buffer, output)) return false;
  }
  return FitsWrittenSparse(buffer, outcome, next) &&
         std::ranges::all_of(outcome.resized, [&](const Resized& item) { return item.input < buffer.tensors.size(); });
}

at::Tensor MakeTensor(const CallBuffer& buffer, const Output& output, ResultHandles& handles) {
  switch (output.tag) {
    case OutputTag::kTensor: return TensorOn(NewStorage(output, handles), output.geometry);
    case OutputTag::kAlias:
      return TensorOn(c10::Storage(buffer.tensors[output.alias]->unsafe_storage()), output.geometry);
    case OutputTag::kSparse: return MakeSparseResult(buffer, output, handles);
    default: return {};
  }
}

void PutResults(const Operator& op, const CallBuffer& buffer, const Outcome& outcome, ResultHandles& handles,
                torch::jit::Stack& stack) {
  for (const Resized& resized : outcome.resized) Resize(buffer.tensors[resized.input], resized.geometry);
  const size_t first = stack.size() - op.arguments.size();
  auto output = outcome.outputs.begin();
  if (op.returns.size() == 1 && !op.arguments.empty()) [[likely]] {
    const ReturnPlan& plan = op.returns.front();
    c10::IValue value = plan.kind == ReturnKind::kMutatedArgument ? std::move(stack[first + plan.argument])
                                                                  : MakeValue(buffer, *output, handles);
    stack.resize(first + 1);
    stack[first] = std::move(value);
    return;
  }
  c10::SmallVector<c10::IValue, 4> values;
  for (const ReturnPlan& plan : op.returns) {
    if (plan.kind == ReturnKind::kMutatedArgument) {
      values.push_back(std::move(stack[first + plan.argument]));
    } else {
      values.push_back(MakeValue(buffer, *output++, handles));
    }
  }
  stack.resize(first);
  for (c10::IValue& value : values) stack.push_back(std::move(value));
}

}  // namespace flagos::client
