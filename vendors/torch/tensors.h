// SPDX-License-Identifier: Apache-2.0
// Tensors from storages and geometry, and geometry from tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Storage.h>

#include "proto/wire/signature.h"

namespace flagos::torch_host {

// A tensor of this geometry and these flags over the storage, which REQUIRES to hold geometry.required_bytes().
at::Tensor TensorOver(c10::Storage storage, const Geometry& geometry, c10::DispatchKey key);

// A strided tensor's geometry. REQUIRES a dtype that the wire has.
Geometry GeometryOf(const at::Tensor& tensor, uint8_t device);

// Same sizes, strides and offset.
bool SameLayout(const at::Tensor& tensor, const Geometry& geometry);
// Same dtype and sizes: its values can be copied into a tensor of this geometry without a change.
bool SameValues(const at::Tensor& tensor, const Geometry& geometry);

// Same bytes as `storage`, resizable apart from it: where a kernel resizes it, `storage` keeps what others are using.
c10::Storage Shadow(const c10::Storage& storage);

// Bytes of others (shared with a client, say) as a storage that never frees or resizes them.
c10::Storage Borrow(void* data, size_t bytes, c10::Device device);

// The storage that an argument's tensor stands on, to be exchanged between calls. The tensor may have none for a while.
inline c10::Storage& StorageOf(const at::Tensor& tensor) {
  return const_cast<c10::Storage&>(tensor.unsafeGetTensorImpl()->unsafe_storage());
}

}  // namespace flagos::torch_host
