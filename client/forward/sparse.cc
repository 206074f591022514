// SPDX-License-Identifier: Apache-2.0
#include "client/forward/sparse.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/core/DeviceGuard.h>

#include "client/forward/types.h"
#include "proto/wire/bytes.h"

namespace flagos::client {
namespace {

c10::Layout LayoutOf(Layout layout) {
  switch (layout) {
    case Layout::kSparseCsr: return c10::kSparseCsr;
    case Layout::kSparseCsc: return c10::kSparseCsc;
    case Layout::kSparseBsr: return c10::kSparseBsr;
    case Layout::kSparseBsc: return c10::kSparseBsc;
    default: return c10::kSparse;
  }
}

void SetComponents(at::SparseTensorImpl& impl, const SparseShape& shape, const Components& components) {
  const bool same = impl.sizes() == c10::IntArrayRef(shape.sizes) && impl.sparse_dim() == shape.sparse_dim &&
                    impl.dense_dim() == shape.dense_dim;
  if (!same) impl.raw_resize_(shape.sparse_dim, shape.dense_dim, shape.sizes);
  impl.set_indices_and_values_unsafe(components[0], components[1]);
  impl.set_coalesced(shape.coalesced);
}

// PyTorch derives the numbers of dimensions from these, so they have to be what the shape says.
void SetComponents(at::SparseCsrTensorImpl& impl, const SparseShape& shape, const Components& components) {
  const bool blocks = shape.layout == Layout::kSparseBsr || shape.layout == Layout::kSparseBsc;
  const auto batches = static_cast<int64_t>(shape.sizes.size()) - shape.sparse_dim - shape.dense_dim;
  TORCH_CHECK(components[0].dim() == batches + 1 && components[1].dim() == batches + 1 &&
                  components[2].dim() == batches + 1 + (blocks ? 2 : 0) + shape.dense_dim,
              "flagos: the components of a compressed sparse tensor do not have the dimensions that it has; use client "
              "and flagosd of one version");
  impl.set_member_tensors(components[0], components[1], components[2], c10::IntArrayRef(shape.sizes));
}

bool FitEachOther(const at::SparseCsrTensorImpl& impl) {
  const at::Tensor &compressed = impl.compressed_indices(), &plain = impl.plain_indices();
  const auto dimensions = static_cast<int64_t>(impl.sizes().size());
  const c10::ScalarType type = compressed.scalar_type();
  return (type == c10::kInt || type == c10::kLong) && plain.scalar_type() == type && compressed.dim() == plain.dim() &&
         impl.dense_dim() >= 0 && impl.batch_dim() + impl.sparse_dim() + impl.dense_dim() == dimensions;
}

}  // namespace

Components ComponentsOf(const c10::TensorImpl& impl) {
  if (impl.is_sparse()) {
    const auto& coo = static_cast<const at::SparseTensorImpl&>(impl);
    return {coo.indices(), coo.values()};
  }
  const auto& compressed = static_cast<const at::SparseCsrTensorImpl&>(impl);
  return {compressed.compressed_indices(), compressed.plain_indices(), compressed.values()};
}

bool IsCoalesced(const c10::TensorImpl& impl) {
  return impl.is_sparse() && static_cast<const at::SparseTensorImpl&>(impl).coalesced();
}

const char* PutSparseShape(Scratch<std::byte>& out, const c10::TensorImpl& impl) {
  const auto sizes = impl.sizes();
  const DType dtype = ToWire(impl.dtype().toScalarType());
  if (dtype == DType::kUndefined || sizes.size() > kMaxDimensions || impl.numel() > kMaxElements)
    return "its data type, number of dimensions or number of elements cannot be sent to a device server";
  int64_t sparse_dim = 0, dense_dim = 0;
  if (impl.is_sparse()) {
    const auto& coo = static_cast<const at::SparseTensorImpl&>(impl);
    sparse_dim = coo.sparse_dim();
    dense_dim = coo.dense_dim();
  } else {
    const auto& compressed = static_cast<const at::SparseCsrTensorImpl&>(impl);
    sparse_dim = compressed.sparse_dim();
    dense_dim = compressed.dense_dim();
    if (!FitEachOther(compressed))
      return "its indices are not all int32 or all int64, or have not the dimensions of it";
  }
  Cursor at(out.extend(7 + sizes.size() * sizeof(int64_t)));
  at.put(ArgTag::kSparseTensor);
  at.put(ToWire(impl.layout()));
  at.put(dtype);
  at.put(static_cast<uint8_t>(IsCoalesced(impl)));
  at.put(static_cast<uint8_t>(sparse_dim));
  at.put(static_cast<uint8_t>(dense_dim));
  at.put(static_cast<uint8_t>(sizes.size()));
  for (const int64_t size : sizes) at.put(size);
  return nullptr;
}

at::Tensor MakeSparse(const SparseShape& shape, const Components& components) {
  const c10::Device device = components.back().device();
  const c10::DeviceGuard guard(device);  // PyTorch makes the components that these replace on the current device
  const auto type = c10::scalarTypeToTypeMeta(FromWire(shape.dtype));
  if (shape.layout == Layout::kSparse) {
    auto tensor =
        at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(c10::DispatchKey::SparsePrivateUse1), type);
    SetComponents(static_cast<at::SparseTensorImpl&>(*tensor.unsafeGetTensorImpl()), shape, components);
    return tensor;
  }
  auto tensor = at::detail::make_tensor<at::SparseCsrTensorImpl>(
      c10::DispatchKeySet(c10::DispatchKey::SparseCsrPrivateUse1), device, LayoutOf(shape.layout), type);
  SetComponents(static_cast<at::SparseCsrTensorImpl&>(*tensor.unsafeGetTensorImpl()), shape, components);
  return tensor;
}

void ReplaceComponents(c10::TensorImpl& impl, const SparseShape& shape, const Components& components) {
  if (impl.is_sparse()) {
    SetComponents(static_cast<at::SparseTensorImpl&>(impl), shape, components);
  } else {
    SetComponents(static_cast<at::SparseCsrTensorImpl&>(impl), shape, components);
  }
}

}  // namespace flagos::client
