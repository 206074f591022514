// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/sparse.h"

#include <ATen/ATen.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "vendors/torch/dtypes.h"

namespace flagos::torch_host {
namespace {

const char* CheckCoo(const SparseShape& shape, const Geometry& indices, const Geometry& values) {
  if (indices.dtype != DType::kInt64) return "has indices that are not int64";
  if (indices.sizes.size() != 2 || indices.sizes[0] != shape.sparse_dim)
    return "has indices that do not name its sparse dimensions";
  if (values.sizes.size() != size_t{1} + shape.dense_dim || values.sizes[0] != indices.sizes[1] ||
      !std::equal(values.sizes.begin() + 1, values.sizes.end(), shape.sizes.begin() + shape.sparse_dim)) {
    return "has values that do not fit its indices or its dense dimensions";
  }
  return nullptr;
}

// The rest, sizes and blocks, is checked with the indices.
const char* CheckCompressed(const SparseShape& shape, const Geometry& compressed, const Geometry& plain,
                            const Geometry& values) {
  if ((compressed.dtype != DType::kInt64 && compressed.dtype != DType::kInt32) || plain.dtype != compressed.dtype)
    return "has indices that are neither int32 nor int64";
  const size_t batches = shape.sizes.size() - shape.sparse_dim - shape.dense_dim;
  const bool blocks = shape.layout == Layout::kSparseBsr || shape.layout == Layout::kSparseBsc;
  if (compressed.sizes.size() != batches + 1 || plain.sizes.size() != batches + 1 ||
      values.sizes.size() != batches + 1 + (blocks ? 2 : 0) + shape.dense_dim) {
    return "has components of other dimensions than it";
  }
  return nullptr;
}

at::Tensor Assemble(const SparseArgument& argument) {
  const SparseShape& shape = argument.prepared->shape;
  const std::vector<at::Tensor>& parts = argument.components;
  const auto options = parts.back().options().layout(ToLayout(shape.layout));
  if (shape.layout == Layout::kSparse) {
    at::_validate_sparse_coo_tensor_args(parts[0], parts[1], shape.sizes, shape.coalesced,
                                         /*check_pinning=*/false);
    return at::_sparse_coo_tensor_with_dims_and_tensors(shape.sparse_dim, shape.dense_dim, shape.sizes, parts[0],
                                                        parts[1], options, shape.coalesced);
  }
  at::_validate_sparse_compressed_tensor_args(parts[0], parts[1], parts[2], shape.sizes, ToLayout(shape.layout),
                                              /*check_pinning=*/false);
  return at::_sparse_compressed_tensor_unsafe(parts[0], parts[1], parts[2], shape.sizes, options);
}

void Place(c10::IValue& value, const Slot& slot, uint32_t item, const at::Tensor& tensor) {
  switch (slot.kind) {
    case Slot::Kind::kTensorList: value.toTensorList().set(item, tensor); break;
    case Slot::Kind::kOptionalTensorList: value.toOptionalTensorList().set(item, tensor); break;
    default: value = tensor; break;
  }
}

void CheckKernel(const PreparedCall& call, const CallFrame& frame, c10::DispatchKey dense) {
  // Of both kinds the compressed one decides, as in PyTorch.
  Layout layout = Layout::kSparse;
  for (const SparseArgument& argument : frame.sparse) {
    if (argument.prepared->shape.layout != Layout::kSparse) layout = argument.prepared->shape.layout;
  }
  const c10::DispatchKey key = SparseKey(dense, layout);
  TORCH_CHECK_NOT_IMPLEMENTED(call.op->handle.hasComputedKernelForDispatchKey(key), "flagos: '", call.op->name,
                              "' has no kernel for sparse tensors in the executor's PyTorch (", key,
                              "). Call .to_dense() on them before.");
}

void PlaceAll(const PreparedCall& call, CallFrame& frame) {
  auto next = frame.sparse.begin();
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Slot& slot = call.slots[i];
    for (uint32_t k = 0; k < slot.count; ++k) {
      if (call.tensors[slot.first + k].tag != ArgTag::kSparseTensor) continue;
      next->tensor = Assemble(*next);
      Place(frame.stack[i], slot, k, next->tensor);
      ++next;
    }
  }
}

}  // namespace

c10::DispatchKey SparseKey(c10::DispatchKey dense, Layout layout) {
  return c10::toRuntimePerBackendFunctionalityKey(
      layout == Layout::kSparse ? c10::DispatchKey::Sparse : c10::DispatchKey::SparseCsr,
      c10::toBackendComponent(dense));
}

const char* CheckComponents(const SparseShape& shape, const std::vector<Argument>& components) {
  for (const Argument& component : components) {
    if ((component.tensor.flags & kTensorWrappedNumber) != 0) return "has a number as a component";
  }
  return shape.layout == Layout::kSparse
             ? CheckCoo(shape, components[0].tensor, components[1].tensor)
             : CheckCompressed(shape, components[0].tensor, components[1].tensor, components[2].tensor);
}

void RunSparse(const PreparedCall& call, CallFrame& frame, c10::DispatchKey key) {
  CheckKernel(call, frame, key);
  PlaceAll(call, frame);
  if (!call.op->asks_for_gradients) return call.op->handle.callBoxed(&frame.stack);
  for (const SparseArgument& argument : frame.sparse) argument.tensor.set_requires_grad(true);
  const c10::AutoGradMode gradients(true);
  call.op->handle.callBoxed(&frame.stack);
}

SparseParts TakeApart(const at::Tensor& tensor) {
  SparseParts parts;
  parts.shape.dtype = ToDType(tensor.scalar_type());
  parts.shape.sizes = tensor.sizes().vec();
  int64_t sparse_dim = 0, dense_dim = 0;
  if (tensor.is_sparse()) {
    const auto& impl = static_cast<const at::SparseTensorImpl&>(*tensor.unsafeGetTensorImpl());
    parts.components = {impl.indices(), impl.values()};
    parts.shape.coalesced = impl.coalesced();
    sparse_dim = impl.sparse_dim();
    dense_dim = impl.dense_dim();
  } else if (tensor.unsafeGetTensorImpl()->is_sparse_compressed()) {
    const auto& impl = static_cast<const at::SparseCsrTensorImpl&>(*tensor.unsafeGetTensorImpl());
    parts.components = {impl.compressed_indices(), impl.plain_indices(), impl.values()};
    sparse_dim = impl.sparse_dim();
    dense_dim = impl.dense_dim();
  }
  switch (tensor.layout()) {
    case c10::kSparse: parts.shape.layout = Layout::kSparse; break;
    case c10::kSparseCsr: parts.shape.layout = Layout::kSparseCsr; break;
    case c10::kSparseCsc: parts.shape.layout = Layout::kSparseCsc; break;
    case c10::kSparseBsr: parts.shape.layout = Layout::kSparseBsr; break;
    case c10::kSparseBsc: parts.shape.layout = Layout::kSparseBsc; break;
    default: parts.shape.layout = Layout::kStrided; break;
  }
  parts.shape.sparse_dim = static_cast<uint8_t>(sparse_dim);
  parts.shape.dense_dim = static_cast<uint8_t>(dense_dim);
  return parts;
}

}  // namespace flagos::torch_host
