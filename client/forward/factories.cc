// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>

#include "client/device.h"
#include "client/forward/local.h"
#include "client/forward/new_tensor.h"
#include "client/forward/types.h"
#include "client/handles.h"

namespace flagos::client {

c10::Storage StorageOf(c10::DataPtr data, uint64_t bytes) {
  return {c10::Storage::use_byte_size_t(), bytes, std::move(data), DeviceAllocator(), true};
}

at::Tensor TensorOver(const c10::Storage& storage, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset,
                      c10::ScalarType dtype) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

at::Tensor NewTensor(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, c10::Device device) {
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  return TensorOver(StorageOf(AllocateOnDevice(bytes, device), bytes), sizes, strides, 0, dtype);
}

namespace {

c10::Device DeviceOrCurrent(std::optional<c10::Device> device) {
  return ResolveDevice(device.value_or(c10::Device(c10::kPrivateUse1)));
}

c10::ScalarType CheckedType(std::optional<c10::ScalarType> dtype) {
  const c10::ScalarType type = c10::dtype_or_default(dtype);
  TORCH_CHECK_NOT_IMPLEMENTED(ToWire(type) != DType::kUndefined, "flagos: the device has no tensors of ", type,
                              "; keep them on the CPU");
  if (type == c10::ScalarType::ComplexHalf) [[unlikely]] {
    TORCH_WARN_ONCE("ComplexHalf support is experimental and many operators don't support it yet.");
  }
  return type;
}

void CheckOptions(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false),
              "Only dense CPU tensors can be pinned: pin_memory=True does not go with a tensor on the device");
  TORCH_CHECK_NOT_IMPLEMENTED(c10::layout_or_default(layout) == c10::kStrided,
                              "flagos: the device has no such tensors of layout ", c10::layout_or_default(layout),
                              "; make a dense or sparse one");
}

void CheckDimensions(c10::IntArrayRef sizes) {
  TORCH_CHECK(sizes.size() <= kMaxDimensions, "flagos: a tensor of ", sizes.size(),
              " dimensions was asked for; the most are ", kMaxDimensions);
}

at::Tensor FilledIfDeterministic(at::Tensor tensor) {
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory()) [[unlikely]] {
    at::native::fill_empty_deterministic_(tensor);
  }
  return tensor;
}

at::Tensor Empty(c10::SymIntArrayRef symbolic, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> memory_format) {
  CheckOptions(layout, pin_memory);
  const auto sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
  const c10::ScalarType type = CheckedType(dtype);
  at::detail::check_size_nonnegative(sizes);
  CheckDimensions(sizes);
  at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(type));  // throws on overflow
  const auto strides = c10::contiguous_strides(sizes);
  at::Tensor tensor = NewTensor(sizes, strides, type, DeviceOrCurrent(device));
  if (memory_format && *memory_format != c10::MemoryFormat::Contiguous) {
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*memory_format);
  }
  return FilledIfDeterministic(std::move(tensor));
}

at::Tensor EmptyStrided(c10::SymIntArrayRef symbolic_sizes, c10::SymIntArrayRef symbolic_strides,
                        std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                        std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  CheckOptions(layout, pin_memory);
  const auto sizes = C10_AS_INTARRAYREF_SLOW(symbolic_sizes);
  const auto strides = C10_AS_INTARRAYREF_SLOW(symbolic_strides);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  at::detail::check_size_nonnegative(sizes);
  for (const int64_t stride : strides) {
    TORCH_CHECK(stride >= 0, "Negative strides are not supported at the moment. Got strides: ", strides);
  }
  CheckDimensions(sizes);
  return FilledIfDeterministic(NewTensor(sizes, strides, CheckedType(dtype), DeviceOrCurrent(device)));
}

// A tensor of zeros without memory, as automatic differentiation makes them; the ZeroTensor key keeps kernels off it.
at::Tensor EfficientZeroTensor(c10::SymIntArrayRef symbolic, std::optional<c10::ScalarType> dtype,
                               std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                               std::optional<bool> pin_memory) {
  CheckOptions(layout, pin_memory);
  at::native::ZeroTensorAllocator allocator(DeviceOrCurrent(device));
  const auto keys = c10::DispatchKeySet({c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor});
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(symbolic), &allocator, keys, CheckedType(dtype),
                                   std::nullopt);
}

}  // namespace

void RegisterFactories(torch::Library& library) {
  library.impl("empty.memory_format", TORCH_FN(Empty));
  library.impl("empty_strided", TORCH_FN(EmptyStrided));
  library.impl("_efficientzerotensor", TORCH_FN(EfficientZeroTensor));
}

}  // namespace flagos::client
