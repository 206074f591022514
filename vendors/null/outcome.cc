// SPDX-License-Identifier: Apache-2.0
#include "vendors/null/outcome.h"

#include <algorithm>

namespace flagos::null {
namespace {

// Tensors on the device among the arguments, lists included, in order.
std::vector<const Geometry*> DeviceTensors(const std::vector<Argument>& arguments) {
  std::vector<const Geometry*> tensors;
  for (const Argument& argument : arguments) {
    if (argument.tag == ArgTag::kTensor) tensors.push_back(&argument.tensor);
    const auto inner = DeviceTensors(argument.list);
    tensors.insert(tensors.end(), inner.begin(), inner.end());
  }
  return tensors;
}

// Where the sizes do not broadcast (mm, cat) the first tensor's stay.
std::vector<int64_t> BroadcastSizes(const std::vector<const Geometry*>& tensors) {
  std::vector<int64_t> sizes = tensors.front()->sizes;
  for (const Geometry* tensor : tensors) {
    std::vector<int64_t> both(std::max(sizes.size(), tensor->sizes.size()), 1);
    std::copy_backward(sizes.begin(), sizes.end(), both.end());
    const size_t skip = both.size() - tensor->sizes.size();
    for (size_t i = 0; i < tensor->sizes.size(); ++i) {
      const int64_t size = tensor->sizes[i];
      if (both[skip + i] == 1) {
        both[skip + i] = size;
      } else if (size != 1 && size != both[skip + i]) {
        return tensors.front()->sizes;
      }
    }
    sizes = std::move(both);
  }
  return sizes;
}

Output NewTensor(DType dtype, uint8_t device, std::vector<int64_t> sizes) {
  Output output;
  output.tag = OutputTag::kTensor;
  Geometry& geometry = output.geometry;
  geometry.dtype = dtype;
  geometry.device = device;
  geometry.strides.resize(sizes.size());
  int64_t stride = 1;
  bool fits = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    geometry.strides[i] = stride;
    fits = fits && !__builtin_mul_overflow(stride, std::max<int64_t>(sizes[i], 1), &stride);
  }
  geometry.sizes = std::move(sizes);
  output.storage_bytes = geometry.required_bytes();
  // Broadcasting can name more elements than there are bytes in the world.
  if (!fits || output.storage_bytes >= uint64_t{1} << 62) return NewTensor(dtype, device, {});
  return output;
}

// For calls without tensor arguments: sizes from the first list of ints, dtype from the first dtype.
Output NewFromArguments(const Signature& signature) {
  DType dtype = DType::kFloat32;
  uint8_t device = 0;
  const std::vector<int64_t>* sizes = nullptr;
  for (const Argument& argument : signature.arguments) {
    if (argument.tag == ArgTag::kDType && argument.integer != 0) dtype = static_cast<DType>(argument.integer);
    if (argument.tag == ArgTag::kDevice && argument.device == DeviceKind::kFlagos && argument.integer < kMaxDevices) {
      device = static_cast<uint8_t>(argument.integer);
    }
    if (argument.tag == ArgTag::kIntList && sizes == nullptr) sizes = &argument.integers;
  }
  const bool usable = sizes != nullptr && sizes->size() <= kMaxDimensions &&
                      std::all_of(sizes->begin(), sizes->end(), [](int64_t size) { return size >= 0; });
  return NewTensor(dtype, device, usable ? *sizes : std::vector<int64_t>());
}

Output NewList(const Signature& signature) {
  Output output;
  output.tag = OutputTag::kList;
  for (const Argument& argument : signature.arguments) {
    if (argument.list.empty()) continue;
    for (const Argument& item : argument.list) {
      if (item.tag == ArgTag::kTensor) {
        output.list.push_back(NewTensor(item.tensor.dtype, item.tensor.device, item.tensor.sizes));
      }
    }
    break;
  }
  return output;
}

// Of the kind that a number read from such a tensor has.
OutputTag ValueTag(const OperatorDefinition& op, const std::vector<const Geometry*>& tensors) {
  if (op.name != "aten::_local_scalar_dense" || tensors.empty()) return OutputTag::kBool;
  switch (tensors.front()->dtype) {
    case DType::kBool: return OutputTag::kBool;
    case DType::kComplex32:
    case DType::kComplex64:
    case DType::kComplex128: return OutputTag::kComplex;
    case DType::kUint8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64: return OutputTag::kInt;
    default: return OutputTag::kDouble;
  }
}

}  // namespace

Outcome PlausibleOutcome(const OperatorDefinition& op, const Signature& signature) {
  if (signature.predicted) return signature.expected;
  const auto tensors = DeviceTensors(signature.arguments);
  Outcome outcome;
  for (const ReturnKind kind : op.returns) {
    switch (kind) {
      case ReturnKind::kTensor:
        outcome.outputs.push_back(
            tensors.empty() ? NewFromArguments(signature)
                            : NewTensor(tensors.front()->dtype, tensors.front()->device, BroadcastSizes(tensors)));
        break;
      case ReturnKind::kTensorList: outcome.outputs.push_back(NewList(signature)); break;
      case ReturnKind::kValue: outcome.outputs.emplace_back().tag = ValueTag(op, tensors); break;
      case ReturnKind::kMutatedArgument: break;
    }
  }
  return outcome;
}

}  // namespace flagos::null
