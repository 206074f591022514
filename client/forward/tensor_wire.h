// SPDX-License-Identifier: Apache-2.0
// One tensor's geometry as it stands in a signature.
#pragma once

#include <c10/core/TensorImpl.h>

#include "client/forward/scratch.h"
#include "client/forward/types.h"
#include "proto/wire/signature.h"

namespace flagos::client {

// A dense tensor on the device: what crosses as a handle and a geometry.
inline bool IsPlainDeviceTensor(const c10::TensorImpl& impl) {
  return impl.key_set().has(c10::DispatchKey::PrivateUse1) && impl.has_storage();
}

inline uint8_t WireFlags(const c10::TensorImpl& impl) {
  constexpr c10::DispatchKeySet kLazy({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  uint8_t flags = impl.is_wrapped_number() ? kTensorWrappedNumber : 0;
  if (impl.key_set().has_any(kLazy)) [[unlikely]] {
    if (impl.is_conj()) flags |= kTensorConj;
    if (impl.is_neg()) flags |= kTensorNeg;
  }
  return flags;
}

// Writes tag and geometry. False where the wire does not know the data type, or the tensor has too many dimensions or
// elements.
inline bool PutGeometry(Scratch<std::byte>& out, ArgTag tag, DType dtype, uint8_t flags, uint8_t device, int64_t offset,
                        c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  if (dtype == DType::kUndefined || sizes.size() > kMaxDimensions) [[unlikely]]
    return false;
  const size_t bytes = sizes.size() * sizeof(int64_t);
  Cursor at(out.extend(13 + 2 * bytes));
  at.put(tag);
  at.put(dtype);
  at.put(flags);
  at.put(device);
  at.put(static_cast<uint8_t>(sizes.size()));
  at.put(offset);
  for (const int64_t size : sizes) at.put(size);
  for (const int64_t stride : strides) at.put(stride);
  return true;
}

// `flags` are added to those that the tensor has itself.
inline bool PutTensor(Scratch<std::byte>& out, ArgTag tag, const c10::TensorImpl& impl, uint8_t flags = 0) {
  // Its extent is within its storage; only what is expanded can have more elements than the wire counts.
  if (impl.numel() > kMaxElements) [[unlikely]]
    return false;
  return PutGeometry(out, tag, ToWire(impl.dtype().toScalarType()), WireFlags(impl) | flags,
                     static_cast<uint8_t>(impl.device().index()), impl.storage_offset(), impl.sizes(), impl.strides());
}

}  // namespace flagos::client
