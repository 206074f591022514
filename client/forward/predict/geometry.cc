// SPDX-License-Identifier: Apache-2.0
#include "client/forward/predict/geometry.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "client/forward/types.h"

namespace flagos::client {

Output NewOutput(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  at::detail::check_size_nonnegative(sizes);  // some meta functions leave that to the allocation
  Output output;
  output.tag = OutputTag::kTensor;
  output.geometry.dtype = ToWire(dtype);
  output.geometry.sizes = sizes.vec();
  output.geometry.strides = strides.vec();
  output.storage_bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  return output;
}

Output NewOutput(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  return NewOutput(sizes, c10::contiguous_strides(sizes), dtype);
}

Output NewOutput(const at::Tensor& twin) { return NewOutput(twin.sizes(), twin.strides(), twin.scalar_type()); }

Output OutputLike(const at::Tensor& tensor) { return OutputLike(tensor, tensor.scalar_type()); }

Output OutputLike(const at::Tensor& tensor, c10::ScalarType dtype) {
  if (tensor.is_non_overlapping_and_dense()) return NewOutput(tensor.sizes(), tensor.strides(), dtype);
  return NewOutput(tensor.sizes(), at::infer_dense_strides(tensor.sizes(), tensor.strides()), dtype);
}

bool WritesInPlace(Arguments arguments, size_t target, c10::IntArrayRef sizes, c10::ScalarType dtype, bool casts) {
  if (!arguments[target].isTensor()) return false;
  const at::Tensor& written = arguments[target].toTensor();
  if (written.sizes() != sizes) return false;
  if (casts ? !c10::canCast(dtype, written.scalar_type()) : dtype != written.scalar_type()) return false;
  if (at::has_internal_overlap(written) != at::MemOverlap::No) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i == target || !arguments[i].isTensor()) continue;
    const at::Tensor& other = arguments[i].toTensor();
    if (!other.defined() || !other.has_storage() || !other.is_alias_of(written)) continue;
    if (other.storage_offset() != written.storage_offset() || other.sizes() != written.sizes() ||
        other.strides() != written.strides()) {
      return false;
    }
  }
  return true;
}

}  // namespace flagos::client
