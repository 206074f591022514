// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/arguments.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "proto/wire/records.h"
#include "vendors/torch/tensors.h"

namespace flagos::torch_host {
namespace {

template <class T>
T Read(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

at::Scalar ReadScalar(std::span<const std::byte> bytes, size_t at, ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kInt: return Read<int64_t>(bytes, at);
    case ScalarKind::kDouble: return Read<double>(bytes, at);
    case ScalarKind::kBool: return Read<uint64_t>(bytes, at) != 0;
    case ScalarKind::kComplex: return Read<c10::complex<double>>(bytes, at);
    case ScalarKind::kUnsigned: return Read<uint64_t>(bytes, at);
  }
  return 0;
}

[[noreturn]] void RefuseTooSmall(const PreparedCall& prepared, uint64_t needed, uint64_t bytes) {
  throw Refusal(ErrorCode::kMalformed, "a tensor of " + prepared.op->name + " needs " + std::to_string(needed) +
                                           " bytes of a storage of " + std::to_string(bytes) +
                                           "; it is used after its storage was made smaller");
}

// The values that a call carries itself. They are copied: the bytes belong to the ring.
c10::Storage StorageOfValues(std::span<const std::byte> values) {
  c10::Allocator* allocator = c10::GetCPUAllocator();
  c10::Storage storage(c10::Storage::use_byte_size_t(), values.size(), allocator, true);
  if (!values.empty()) std::memcpy(storage.mutable_data(), values.data(), values.size());
  return storage;
}

}  // namespace

c10::Storage Arguments::host_storage(const PreparedCall& prepared, const PreparedTensor& item,
                                     const vendor::Call& call) const {
  if (item.tag != ArgTag::kHostTensor) return StorageOfValues(call.free_bytes.subspan(item.free_offset, item.bytes));
  const auto range = Read<ArenaRange>(call.free_bytes, item.free_offset);
  if (range.segment != 0 || range.offset > arena_.size() || range.length > arena_.size() - range.offset) {
    throw Refusal(ErrorCode::kMalformed,
                  "a host tensor of " + prepared.op->name + " lies outside the arena; restart the job");
  }
  if (range.length < item.bytes) RefuseTooSmall(prepared, item.bytes, range.length);
  constexpr size_t kMaxAlignment = 16;
  if (range.offset % std::min(ElementSize(item.geometry.dtype), kMaxAlignment) != 0) {
    throw Refusal(ErrorCode::kMalformed, "a host tensor of " + prepared.op->name + " is not aligned in the arena");
  }
  runtime_.use_arena(arena_.subspan(range.offset, range.length));
  return Borrow(arena_.data() + range.offset, range.length, c10::Device(c10::kCPU));
}

c10::Storage Arguments::storage(const PreparedCall& prepared, const PreparedTensor& item,
                                const vendor::Call& call) const {
  if (item.tag != ArgTag::kTensor) return host_storage(prepared, item, call);
  const uint32_t handle = call.inputs[item.input];
  const c10::Storage& storage = table_.get(handle);
  if (storage.nbytes() < item.bytes) [[unlikely]]
    RefuseTooSmall(prepared, item.bytes, storage.nbytes());
  // Handle 0 is everybody's.
  if (handle == 0 && item.written) [[unlikely]]
    return runtime_.allocate(0, call.device, call.stream);
  return storage;
}

at::Tensor Arguments::tensor(const PreparedCall& prepared, PreparedTensor& item, const vendor::Call& call,
                             CallFrame& frame, bool lend) const {
  if (!IsDense(item.tag)) [[unlikely]] {
    if (item.tag == ArgTag::kNone) return {};
    return sparse_tensor(prepared, prepared.sparse[item.input], call, frame);
  }
  if (item.same) [[unlikely]] {
    if (const at::Tensor operand = same(item, call, frame); operand.defined()) return operand;
  }
  c10::Storage bytes = storage(prepared, item, call);
  if (item.tag == ArgTag::kTensor && shadows(prepared)) [[unlikely]]
    bytes = shadow(call.inputs[item.input], bytes, frame);
  const c10::DispatchKey key = item.tag == ArgTag::kTensor ? runtime_.dispatch_key() : c10::DispatchKey::CPU;
  if (item.resizable || !lend) {
    at::Tensor made = TensorOver(std::move(bytes), item.geometry, key);
    if (item.resizable) frame.resizable.push_back(made);
    if (item.written) frame.written.push_back(c10::MaybeOwned<at::Tensor>::owned(std::in_place, made));
    return made;
  }
  if (item.lent.defined()) {
    StorageOf(item.lent) = std::move(bytes);
  } else {
    item.lent = TensorOver(std::move(bytes), item.geometry, key);
  }
  if (item.written) frame.written.push_back(c10::MaybeOwned<at::Tensor>::borrowed(item.lent));
  return item.lent;
}

bool Arguments::shadows(const PreparedCall& prepared) const {
  return !prepared.resizable.empty() && runtime_.concurrent();
}

c10::Storage Arguments::shadow(uint32_t handle, const c10::Storage& storage, CallFrame& frame) {
  for (const auto& [known, shadow] : frame.shadows) {
    if (known == handle && handle != 0) return shadow;
  }
  return frame.shadows.emplace_back(handle, Shadow(storage)).second;
}

at::Tensor Arguments::sparse_tensor(const PreparedCall& prepared, const PreparedSparse& sparse,
                                    const vendor::Call& call, CallFrame& frame) const {
  SparseArgument argument{&sparse, {}, {}, {}};
  for (const PreparedTensor& component : sparse.components) {
    c10::Storage original = storage(prepared, component, call);
    argument.components.push_back(
        TensorOver(sparse.written ? Shadow(original) : original, component.geometry, runtime_.dispatch_key()));
    argument.originals.push_back(std::move(original));
  }
  frame.sparse.push_back(std::move(argument));
  return {};
}

at::Tensor Arguments::same(const PreparedTensor& item, const vendor::Call& call, CallFrame& frame) const {
  const void* const bytes = table_.get(call.inputs[item.input]).data();
  for (const c10::IValue& value : frame.stack) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& operand = value.toTensor();
    if (operand.storage().data() != bytes || !SameLayout(operand, item.geometry)) continue;
    if (!SameValues(operand, item.geometry)) continue;
    frame.resizable.push_back(operand);
    frame.written.push_back(c10::MaybeOwned<at::Tensor>::owned(std::in_place, operand));
    return operand;
  }
  return {};
}

c10::IValue Arguments::tensor_list(PreparedCall& prepared, Slot& slot, const vendor::Call& call, CallFrame& frame,
                                   bool lend) const {
  const std::span items(prepared.tensors.data() + slot.first, slot.count);
  lend = lend && std::ranges::none_of(items, &PreparedTensor::resizable);
  if (lend && !slot.value.isNone()) {
    for (PreparedTensor& item : items) {
      if (item.tag == ArgTag::kNone) continue;
      StorageOf(item.lent) = storage(prepared, item, call);
      if (item.written) frame.written.push_back(c10::MaybeOwned<at::Tensor>::borrowed(item.lent));
    }
    return slot.value;
  }
  c10::IValue list;
  if (slot.kind == Slot::Kind::kTensorList) {
    c10::List<at::Tensor> tensors;
    tensors.reserve(items.size());
    for (PreparedTensor& item : items) tensors.push_back(tensor(prepared, item, call, frame, lend));
    list = std::move(tensors);
  } else {
    c10::List<std::optional<at::Tensor>> tensors;
    tensors.reserve(items.size());
    for (PreparedTensor& item : items) {
      if (item.tag == ArgTag::kNone) {
        tensors.push_back(std::nullopt);
      } else {
        tensors.push_back(tensor(prepared, item, call, frame, lend));
      }
    }
    list = std::move(tensors);
  }
  if (lend) slot.value = list;
  return list;
}

void Arguments::push(PreparedCall& prepared, const vendor::Call& call, CallFrame& frame, bool lend) {
  lend = lend && prepared.lends && !shadows(prepared);
  for (Slot& slot : prepared.slots) {
    switch (slot.kind) {
      case Slot::Kind::kConstant: frame.stack.push_back(slot.value); break;
      case Slot::Kind::kTensor:
        frame.stack.emplace_back(tensor(prepared, prepared.tensors[slot.first], call, frame, lend));
        break;
      case Slot::Kind::kTensorList:
      case Slot::Kind::kOptionalTensorList:
        frame.stack.push_back(tensor_list(prepared, slot, call, frame, lend));
        break;
      case Slot::Kind::kScalar:
        frame.stack.emplace_back(ReadScalar(call.free_bytes, slot.free_offset, slot.scalar));
        break;
      case Slot::Kind::kScalarList: {
        c10::List<at::Scalar> list;
        size_t at = slot.free_offset;
        for (const ScalarKind kind : slot.scalars) {
          list.push_back(ReadScalar(call.free_bytes, at, kind));
          at += ScalarBytes(kind);
        }
        frame.stack.emplace_back(std::move(list));
        break;
      }
      case Slot::Kind::kDouble: frame.stack.emplace_back(Read<double>(call.free_bytes, slot.free_offset)); break;
      case Slot::Kind::kGenerator:
        frame.stack.emplace_back(generators_.get(Read<uint32_t>(call.free_bytes, slot.free_offset)));
        break;
      case Slot::Kind::kDefaultGenerator: frame.stack.emplace_back(generators_.default_of(call.device)); break;
      case Slot::Kind::kCallDevice: frame.stack.emplace_back(runtime_.device(call.device)); break;
    }
  }
}

void Arguments::take_back(PreparedCall& prepared) noexcept {
  for (Slot& slot : prepared.slots) {
    if (slot.kind == Slot::Kind::kConstant) continue;
    const bool in_list = slot.kind != Slot::Kind::kTensor;
    const size_t holders = in_list ? 2 : 1;
    bool kept = false;
    for (uint32_t i = slot.first; i < slot.first + slot.count; ++i) {
      PreparedTensor& item = prepared.tensors[i];
      if (!item.lent.defined()) continue;
      if (item.lent.use_count() > holders || (item.written && !SameLayout(item.lent, item.geometry))) [[unlikely]] {
        kept = true;  // by the kernel, or made another tensor by it: the next call gets a new one
        item.lent.reset();
      } else {
        StorageOf(item.lent) = c10::Storage();
      }
    }
    if (kept && in_list) slot.value = c10::IValue();
  }
}

}  // namespace flagos::torch_host
