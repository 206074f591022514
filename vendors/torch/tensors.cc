// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/tensors.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "vendors/torch/dtypes.h"

namespace flagos::torch_host {

at::Tensor TensorOver(c10::Storage storage, const Geometry& geometry, c10::DispatchKey key) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key),
                                                         c10::scalarTypeToTypeMeta(ToScalarType(geometry.dtype)));
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(geometry.sizes, geometry.strides, geometry.offset);
  if (geometry.flags != 0) {
    if (geometry.flags & kTensorWrappedNumber) impl->set_wrapped_number(true);
    if (geometry.flags & kTensorConj) impl->_set_conj(true);
    if (geometry.flags & kTensorNeg) impl->_set_neg(true);
  }
  return tensor;
}

Geometry GeometryOf(const at::Tensor& tensor, uint8_t device) {
  Geometry geometry;
  geometry.dtype = ToDType(tensor.scalar_type());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) geometry.flags |= kTensorWrappedNumber;
  if (tensor.is_conj()) geometry.flags |= kTensorConj;
  if (tensor.is_neg()) geometry.flags |= kTensorNeg;
  geometry.device = device;
  geometry.offset = tensor.storage_offset();
  geometry.sizes = tensor.sizes().vec();
  geometry.strides = tensor.strides().vec();
  return geometry;
}

bool SameLayout(const at::Tensor& tensor, const Geometry& geometry) {
  return tensor.sizes().equals(geometry.sizes) && tensor.strides().equals(geometry.strides) &&
         tensor.storage_offset() == geometry.offset;
}

bool SameValues(const at::Tensor& tensor, const Geometry& geometry) {
  return tensor.scalar_type() == ToScalarType(geometry.dtype) && tensor.sizes().equals(geometry.sizes);
}

c10::Storage Shadow(const c10::Storage& storage) {
  auto* owner = new c10::Storage(storage);
  c10::DataPtr data(
      storage.mutable_data(), owner, [](void* held) { delete static_cast<c10::Storage*>(held); }, storage.device());
  return c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data), storage.allocator(),
                      storage.resizable());
}

c10::Storage Borrow(void* data, size_t bytes, c10::Device device) {
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(data, device), nullptr, false);
}

}  // namespace flagos::torch_host
