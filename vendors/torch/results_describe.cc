// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "vendors/torch/dtypes.h"
#include "vendors/torch/failures.h"
#include "vendors/torch/results.h"
#include "vendors/torch/sparse.h"
#include "vendors/torch/tensors.h"

namespace flagos::torch_host {
namespace {

template <class... Parts>
[[noreturn]] void RefuseResult(const PreparedCall& call, Parts&&... parts) {
  throw Refusal(ErrorCode::kNotImplemented, c10::str(call.op->name, " returned ", parts...));
}

bool Within(std::span<const std::byte> arena, const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  return !arena.empty() && at >= arena.data() && at < arena.data() + arena.size();
}

class Describer {
 public:
  Describer(const PreparedCall& call, const CallFrame& frame, const CallInputs& inputs, Results& results)
      : call_(call), frame_(frame), inputs_(inputs), results_(results) {}

  // A result: dense or sparse.
  Output result(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.layout() == c10::kStrided || tensor.is_nested()) return this->tensor(tensor);
    return sparse(tensor);
  }

  Output sparse(const at::Tensor& tensor) {
    SparseParts parts = TakeApart(tensor);
    if (parts.components.empty()) refuse_layout(tensor);
    check_dtype(tensor);
    Output output;
    output.tag = OutputTag::kSparse;
    output.sparse = std::move(parts.shape);
    for (const at::Tensor& component : parts.components) output.list.push_back(this->tensor(component));
    return output;
  }

  Output tensor(at::Tensor tensor) {
    Output output;
    if (!tensor.defined()) return output;
    check(tensor);
    if (tensor._is_zerotensor()) tensor = at::zeros(tensor.sizes(), tensor.options());
    const size_t input = find_input(tensor.storage().unsafeGetStorageImpl());
    if (input < inputs_.count) {
      output.tag = OutputTag::kAlias;
      output.alias = static_cast<uint16_t>(input);
    } else {
      output.tag = OutputTag::kTensor;
      if (shared(tensor)) tensor = tensor.clone();
      results_.storages.push_back(tensor.storage());
    }
    output.geometry = GeometryOf(tensor, inputs_.device);
    output.storage_bytes = tensor.storage().nbytes();
    if (output.geometry.required_bytes() > output.storage_bytes) {
      throw Refusal(ErrorCode::kInternal, call_.op->name + " returned a tensor that is larger than its storage");
    }
    return output;
  }

  Output list(const c10::IValue& value) {
    Output output;
    output.tag = OutputTag::kList;
    for (const at::Tensor& item : value.toTensorVector()) output.list.push_back(tensor(item));
    return output;
  }

 private:
  void check(const at::Tensor& tensor) const {
    if (tensor.is_nested()) {
      RefuseResult(call_, "a nested tensor, which flagos does not support; pad its parts, or run it on the CPU");
    }
    if (tensor.layout() != c10::kStrided) refuse_layout(tensor);
    if (tensor.device().type() != inputs_.kernel_device.type()) {
      RefuseResult(call_, "a tensor on device ", tensor.device(), ", which flagos cannot hold");
    }
    check_dtype(tensor);
  }
  void check_dtype(const at::Tensor& tensor) const {
    if (ToDType(tensor.scalar_type()) == DType::kUndefined) {
      RefuseResult(call_, "a tensor of dtype ", tensor.scalar_type(), ", which flagos does not support");
    }
  }
  [[noreturn]] void refuse_layout(const at::Tensor& tensor) const {
    RefuseResult(call_, "a tensor of layout ", tensor.layout(),
                 ", which flagos does not support; convert to a dense tensor, or run it on the CPU");
  }
  size_t find_input(const c10::StorageImpl* storage) const {
    if (!frame_.sparse.empty()) storage = unshadowed(storage);
    size_t i = 0;
    while (i < inputs_.count && inputs_.input(i) != storage) ++i;
    return i;
  }
  // The storage that a sparse argument's component stands for, unless the kernel has moved it.
  const c10::StorageImpl* unshadowed(const c10::StorageImpl* storage) const {
    for (const SparseArgument& argument : frame_.sparse) {
      for (size_t i = 0; i < argument.components.size(); ++i) {
        if (StorageOf(argument.components[i]).unsafeGetStorageImpl() != storage) continue;
        const c10::Storage& original = argument.originals[i];
        const bool same = storage->data() == original.data() && storage->nbytes() == original.nbytes();
        return same ? original.unsafeGetStorageImpl() : storage;
      }
    }
    return storage;
  }
  bool shared(const at::Tensor& tensor) const {
    for (const c10::Storage& other : results_.storages) {
      if (other.is_alias_of(tensor.storage())) return true;
    }
    return Within(inputs_.arena, tensor.storage().data());
  }

  const PreparedCall& call_;
  const CallFrame& frame_;
  const CallInputs& inputs_;
  Results& results_;
};

Output ValueOutput(const PreparedCall& call, const c10::IValue& value, const c10::Type& type) {
  Output output;
  if (value.isNone()) {
    output.tag = OutputTag::kNone;
  } else if (value.isInt() && type.kind() == c10::TypeKind::ScalarTypeType) {
    output.tag = OutputTag::kDType;
    output.integer = static_cast<int64_t>(ToDType(static_cast<c10::ScalarType>(value.toInt())));
  } else if (value.isInt()) {
    output.tag = OutputTag::kInt;
    output.integer = value.toInt();
  } else if (value.isUnsigned()) {
    output.tag = OutputTag::kInt;
    output.integer = static_cast<int64_t>(value.toUInt());
  } else if (value.isDouble()) {
    output.tag = OutputTag::kDouble;
    output.real = value.toDouble();
  } else if (value.isBool()) {
    output.tag = OutputTag::kBool;
    output.integer = value.toBool() ? 1 : 0;
  } else if (value.isComplexDouble()) {
    output.tag = OutputTag::kComplex;
    output.real = value.toComplexDouble().real();
    output.imaginary = value.toComplexDouble().imag();
  } else {
    RefuseResult(call, "a value of type ", value.tagKind(), ", which flagos cannot carry");
  }
  return output;
}

bool Listed(const PreparedCall& call, size_t index) { return call.op->returns[index] != ReturnKind::kMutatedArgument; }

const c10::Type& ReturnType(const PreparedCall& call, size_t index) {
  return *call.op->handle.schema().returns()[index].real_type();
}

}  // namespace

Results Describe(const PreparedCall& call, CallFrame& frame, const CallInputs& inputs) {
  Results results;
  Describer describer(call, frame, inputs, results);
  for (size_t i = 0; i < frame.stack.size() && i < call.op->returns.size(); ++i) {
    if (!Listed(call, i)) continue;
    const c10::IValue& value = frame.stack[i];
    if (value.isTensor()) {
      results.outcome.outputs.push_back(describer.result(value.toTensor()));
    } else if (value.isTensorList()) {
      results.outcome.outputs.push_back(describer.list(value));
    } else {
      results.outcome.outputs.push_back(ValueOutput(call, value, ReturnType(call, i)));
    }
  }
  for (const SparseArgument& argument : frame.sparse) {
    if (argument.prepared->written) results.outcome.outputs.push_back(describer.sparse(argument.tensor));
  }
  return results;
}

void ReadValues(const PreparedCall& call, const CallFrame& frame, Outcome& outcome) {
  size_t next = 0;
  for (size_t i = 0; i < frame.stack.size() && i < call.op->returns.size(); ++i) {
    if (!Listed(call, i) || next >= outcome.outputs.size()) continue;
    const c10::IValue& value = frame.stack[i];
    Output& output = outcome.outputs[next++];
    if (!value.isTensor() && !value.isTensorList()) output = ValueOutput(call, value, ReturnType(call, i));
  }
}

std::vector<ResizedInput> DescribeResized(const PreparedCall& call, const CallFrame& frame, uint8_t device) {
  std::vector<ResizedInput> all;
  for (size_t i = 0; i < frame.resizable.size(); ++i) {
    const at::Tensor& tensor = frame.resizable[i];
    const PreparedTensor& item = call.tensors[call.resizable[i]];
    if (SameLayout(tensor, item.geometry)) continue;
    Resized resized{static_cast<uint16_t>(item.input), GeometryOf(tensor, device), tensor.storage().nbytes()};
    all.push_back({std::move(resized), tensor.storage()});
  }
  return all;
}

}  // namespace flagos::torch_host
