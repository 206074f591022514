// SPDX-License-Identifier: Apache-2.0
// resize_ and set_: what changes which bytes a tensor lies on.
#include <ATen/Context.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>

#include "client/forward/local.h"
#include "client/forward/new_tensor.h"
#include "client/forward/types.h"
#include "client/handles.h"
#include "client/memory.h"

namespace flagos::client {
namespace {

// Gives the tensor its sizes and, where it then has elements, a storage that is large enough. The storage comes first:
// where it cannot grow, the tensor stays what it was.
void Resize(c10::TensorImpl* impl, c10::IntArrayRef sizes, at::OptionalIntArrayRef strides) {
  if (impl->sizes() == sizes && (!strides || impl->strides() == *strides)) return;
  if (c10::multiply_integers(sizes) != 0) {
    const size_t bytes =
        strides ? at::detail::computeStorageNbytes(sizes, *strides, impl->itemsize(), impl->storage_offset())
                : at::detail::computeStorageNbytesContiguous(sizes, impl->itemsize(), impl->storage_offset());
    const c10::Storage& storage = impl->unsafe_storage();
    if (bytes > storage.nbytes()) ResizeStorage(storage, bytes);
  }
  if (strides) {
    impl->set_sizes_and_strides(sizes, *strides);
  } else {
    impl->set_sizes_contiguous(sizes);
  }
}

const at::Tensor& ResizeTensor(const at::Tensor& self, c10::SymIntArrayRef symbolic,
                               std::optional<c10::MemoryFormat> memory_format) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
  at::detail::check_size_nonnegative(sizes);
  const auto old_bytes = static_cast<int64_t>(self.storage().nbytes());
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  Resize(impl, sizes, std::nullopt);
  if (memory_format) {
    TORCH_CHECK(*memory_format != c10::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
    impl->empty_tensor_restride(*memory_format);
  }
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory()) [[unlikely]] {
    at::native::fill_resize_deterministic_(self, old_bytes);
  }
  return self;
}

at::Tensor& SetStorageAt(at::Tensor& self, c10::Storage source, c10::SymInt symbolic_offset,
                         c10::SymIntArrayRef symbolic_sizes, c10::SymIntArrayRef symbolic_strides) {
  const int64_t offset = symbolic_offset.guard_int(__FILE__, __LINE__);
  const auto sizes = C10_AS_INTARRAYREF_SLOW(symbolic_sizes);
  const auto strides = C10_AS_INTARRAYREF_SLOW(symbolic_strides);
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  Resize(impl, sizes, strides.data() != nullptr ? at::OptionalIntArrayRef(strides) : std::nullopt);
  return self;
}

at::Tensor& SetStorage(at::Tensor& self, c10::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return SetStorageAt(self, std::move(source), 0, {c10::SymInt(count)}, {});
}

at::Tensor& SetTensor(at::Tensor& self, const at::Tensor& source) {
  if (self.is_same(source)) return self;
  return SetStorageAt(self, source.storage(), source.storage_offset(), source.sym_sizes(), source.sym_strides());
}

at::Tensor& SetEmpty(at::Tensor& self) {
  const c10::Device device = self.device();
  return SetStorageAt(self, StorageOf(AllocateOnDevice(0, device), 0), 0, {c10::SymInt(0)}, {});
}

}  // namespace

void RegisterStorageOperators(torch::Library& library) {
  library.impl("resize_", TORCH_FN(ResizeTensor));
  library.impl("set_", TORCH_FN(SetEmpty));
  library.impl("set_.source_Storage", TORCH_FN(SetStorage));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(SetStorageAt));
  library.impl("set_.source_Tensor", TORCH_FN(SetTensor));
}

}  // namespace flagos::client
