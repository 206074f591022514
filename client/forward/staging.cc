// SPDX-License-Identifier: Apache-2.0
#include "client/forward/staging.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>

namespace flagos::client {

namespace {

constexpr size_t kSharedOutBytes = size_t{1} << 20;

size_t BlockBytes(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  return std::max<size_t>(at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype)), 1);
}

}  // namespace

StagedTensor::StagedTensor(Session& session, std::byte* block, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                           c10::ScalarType dtype)
    : session_(&session),
      block_(block),
      tensor_(at::from_blob(block, sizes, strides, at::TensorOptions().dtype(dtype).device(at::kCPU))) {}

StagedTensor::StagedTensor(Session& session, c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype)
    : StagedTensor(session, session.allocate_arena(BlockBytes(sizes, strides, dtype)), sizes, strides, dtype) {}

std::optional<StagedTensor> StagedTensor::Try(Session& session, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                              c10::ScalarType dtype) {
  std::byte* const block = session.arena().allocate(BlockBytes(sizes, strides, dtype));
  if (block == nullptr) return std::nullopt;
  return StagedTensor(session, block, sizes, strides, dtype);
}

c10::DimVector DenseStrides(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return c10::DimVector(tensor.strides());
  return c10::contiguous_strides(tensor.sizes());
}

at::Tensor WithoutRepetition(at::Tensor tensor) {
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) tensor = tensor.narrow(dim, 0, 1);
  }
  return tensor;
}

void CopyOnHost(const at::Tensor& to, const at::Tensor& from) {
  // One thread fills a third of the memory's bandwidth: large blocks are PyTorch's, which takes several.
  if (to.is_non_overlapping_and_dense() && to.strides() == from.strides() &&
      (from.nbytes() < kSharedOutBytes || at::get_num_threads() == 1)) {
    std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  } else {
    to.copy_(from);
  }
}

void ForEachPiece(const at::Tensor& to, const at::Tensor& from, size_t bytes, size_t most,
                  const std::function<void(const at::Tensor& to, const at::Tensor& from)>& piece) {
  const size_t total = static_cast<size_t>(to.numel()) * bytes;
  if (total <= most) return piece(to, from);
  if (to.dim() != 1 && to.is_contiguous() && from.is_contiguous()) {
    return ForEachPiece(to.view(-1), from.view(-1), bytes, most, piece);
  }
  // Along the first dimension that has something to divide.
  int64_t dim = 0;
  while (to.size(dim) == 1) ++dim;
  const int64_t size = to.size(dim);
  const int64_t step = std::max<int64_t>(1, static_cast<int64_t>(most / (total / static_cast<size_t>(size))));
  for (int64_t at = 0; at < size; at += step) {
    const int64_t length = std::min(step, size - at);
    ForEachPiece(to.narrow(dim, at, length), from.narrow(dim, at, length), bytes, most, piece);
  }
}

}  // namespace flagos::client
