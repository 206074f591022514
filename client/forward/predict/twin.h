// SPDX-License-Identifier: Apache-2.0
// Tensors without memory that stand for others where only their geometry matters.
#pragma once

#include <ATen/core/Tensor.h>

namespace flagos::client {

// A meta tensor of that geometry; no dispatcher and no allocator take part.
inline at::Tensor MetaTensor(c10::IntArrayRef sizes, c10::IntArrayRef strides, caffe2::TypeMeta dtype) {
  auto twin = at::detail::make_tensor<c10::TensorImpl>(c10::DispatchKeySet(c10::DispatchKey::Meta), dtype,
                                                       c10::Device(c10::kMeta));
  twin.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return twin;
}

// The tensor's twin: of its geometry, and a wrapped number where it is one.
inline at::Tensor MetaTwin(const c10::TensorImpl& impl) {
  at::Tensor twin = MetaTensor(impl.sizes(), impl.strides(), impl.dtype());
  if (impl.is_wrapped_number()) twin.unsafeGetTensorImpl()->set_wrapped_number(true);
  return twin;
}

}  // namespace flagos::client
