// SPDX-License-Identifier: Apache-2.0
// What reads and builds the structure of sparse tensors. PyTorch's own functions do it: they work on components, which
// are dense tensors of the device, by operators only.
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_broadcast_to_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/permute_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/zero_native.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include "client/device.h"
#include "client/forward/call.h"
#include "client/forward/local.h"
#include "client/forward/sparse.h"
#include "client/session.h"

namespace flagos::client {
namespace {

using ScalarTypeOption = std::optional<c10::ScalarType>;
using LayoutOption = std::optional<c10::Layout>;
using DeviceOption = std::optional<c10::Device>;
using FormatOption = std::optional<c10::MemoryFormat>;

// PyTorch makes new components on the current device.
template <auto kFunction>
struct OnItsDevice;
template <class R, class Self, class... Rest, R (*kFunction)(Self, Rest...)>
struct OnItsDevice<kFunction> {
  static R Run(Self self, Rest... rest) {
    const c10::DeviceGuard guard(self.device());
    return kFunction(self, std::forward<Rest>(rest)...);
  }
};

// The device of a new tensor, made current. Attaches, so that the operators of the executor are registered before there
// is a sparse tensor to call them with.
class NewOn {
 public:
  explicit NewOn(DeviceOption device)
      : device_((Session::Get(), ResolveDevice(device.value_or(c10::Device(c10::kPrivateUse1))))), guard_(device_) {}
  c10::Device device() const { return device_; }

 private:
  const c10::Device device_;
  const c10::DeviceGuard guard_;
};

at::Tensor WithDims(int64_t sparse_dim, int64_t dense_dim, c10::IntArrayRef sizes, ScalarTypeOption dtype,
                    LayoutOption layout, DeviceOption device, std::optional<bool> pin_memory) {
  const NewOn on(device);
  return at::native::new_with_dims_sparse(sparse_dim, dense_dim, sizes, dtype, layout, on.device(), pin_memory);
}

at::Tensor WithDimsAndTensors(int64_t sparse_dim, int64_t dense_dim, c10::SymIntArrayRef sizes,
                              const at::Tensor& indices, const at::Tensor& values, ScalarTypeOption dtype,
                              LayoutOption layout, DeviceOption, std::optional<bool> pin_memory,
                              std::optional<bool> is_coalesced) {
  const NewOn on(values.device());
  return at::native::new_with_dims_and_tensor_sparse_symint(sparse_dim, dense_dim, sizes, indices, values, dtype,
                                                            layout, on.device(), pin_memory, is_coalesced);
}

at::Tensor EmptyCoo(c10::SymIntArrayRef sizes, ScalarTypeOption dtype, LayoutOption layout, DeviceOption device,
                    std::optional<bool> pin_memory, FormatOption format) {
  const NewOn on(device);
  return at::native::empty_sparse_symint(sizes, dtype, layout, on.device(), pin_memory, format);
}

at::Tensor EmptyCompressed(c10::SymIntArrayRef sizes, ScalarTypeOption dtype, LayoutOption layout, DeviceOption device,
                           std::optional<bool> pin_memory, FormatOption format) {
  const NewOn on(device);
  at::Tensor tensor = at::native::empty_sparse_compressed_symint(sizes, dtype, layout, on.device(), pin_memory, format);
  // PyTorch leaves them unset, which the executor would refuse where the tensor is then the out= of a call.
  ComponentsOf(*tensor.unsafeGetTensorImpl())[0].zero_();
  return tensor;
}

const at::Tensor& ResizeCompressed(const at::Tensor& self, c10::SymIntArrayRef sizes, FormatOption format) {
  const c10::DeviceGuard guard(self.device());
  return at::native::resize_sparse_csr_(self, C10_AS_INTARRAYREF_SLOW(sizes), format);
}

// torch.smm passes one tensor as the addend and as the result, which is cleared first. In the executor these would be
// two, so the addend is what it becomes: zeros.
at::Tensor& SspaddmmOut(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right, const at::Scalar& beta,
                        const at::Scalar& alpha, at::Tensor& out) {
  static Operator& op = Operator::Find("aten::sspaddmm", "out");
  const bool cleared = self.is_same(out) && left.dim() == 2 && right.dim() == 2;
  torch::jit::Stack stack{
      cleared ? at::zeros({left.size(0), right.size(1)}, self.options()) : self, left, right, beta, alpha, out};
  Call(op, stack);
  return out;
}

template <auto kFunction>
void Add(torch::Library& library, const char* name) {
  library.impl(name, &OnItsDevice<kFunction>::Run);
}

void RegisterCoo(torch::Library& library) {
  library.impl("_sparse_coo_tensor_with_dims", TORCH_FN(WithDims));
  library.impl("_sparse_coo_tensor_with_dims_and_tensors", TORCH_FN(WithDimsAndTensors));
  library.impl("empty.memory_format", TORCH_FN(EmptyCoo));
  Add<&at::native::empty_like_sparse_coo>(library, "empty_like");
  Add<&at::native::clone_sparse>(library, "clone");
  Add<&at::native::copy_sparse_wrapper_>(library, "copy_");
  Add<&at::native::copy_sparse_>(library, "copy_sparse_to_sparse_");
  Add<&at::native::sparse_resize_>(library, "sparse_resize_");
  Add<&at::native::sparse_resize_and_clear_>(library, "sparse_resize_and_clear_");
  Add<&at::native::resize_as_sparse_>(library, "resize_as_sparse_");
  Add<&at::native::zero_sparse_>(library, "zero_");
  library.impl("sparse_dim", TORCH_FN(at::native::sparse_dim_sparse));
  library.impl("_dimI", TORCH_FN(at::native::sparse_dim_sparse));
  library.impl("dense_dim", TORCH_FN(at::native::dense_dim_sparse));
  library.impl("_dimV", TORCH_FN(at::native::dense_dim_sparse));
  library.impl("_nnz", TORCH_FN(at::native::_nnz_sparse));
  library.impl("is_coalesced", TORCH_FN(at::native::is_coalesced_sparse));
  library.impl("_coalesced_", TORCH_FN(at::native::_coalesced_sparse_));
  library.impl("_indices", TORCH_FN(at::native::_indices_sparse));
  library.impl("_values", TORCH_FN(at::native::_values_sparse));
  library.impl("indices", TORCH_FN(at::native::indices_sparse));
  library.impl("values", TORCH_FN(at::native::values_sparse));
  library.impl("sspaddmm.out", TORCH_FN(SspaddmmOut));
  // Views by their schemas, so the executor cannot make them.
  Add<&at::native::permute_sparse_coo>(library, "permute");
  Add<&at::native::unsqueeze_sparse>(library, "unsqueeze");
  Add<&at::native::view_as_real_sparse>(library, "view_as_real");
  Add<&at::native::view_as_complex_sparse>(library, "view_as_complex");
  Add<&at::native::sparse_broadcast_to>(library, "_sparse_broadcast_to");
}

void RegisterCompressed(torch::Library& library) {
  library.impl("empty.memory_format", TORCH_FN(EmptyCompressed));
  Add<&at::native::empty_like_sparse_csr>(library, "empty_like");
  Add<&at::native::clone_sparse_compressed>(library, "clone");
  Add<&at::native::copy_sparse_compressed_>(library, "copy_");
  library.impl("resize_", TORCH_FN(ResizeCompressed));
  Add<&at::native::resize_as_sparse_compressed_>(library, "resize_as_sparse_");
  Add<&at::native::zero_sparse_csr_>(library, "zero_");
  library.impl("sparse_dim", TORCH_FN(at::native::sparse_dim_sparse_csr));
  library.impl("dense_dim", TORCH_FN(at::native::dense_dim_sparse_csr));
  library.impl("_nnz", TORCH_FN(at::native::_nnz_sparse_csr));
  library.impl("values", TORCH_FN(at::native::values_sparse_csr));
  library.impl("crow_indices", TORCH_FN(at::native::crow_indices_sparse_csr));
  library.impl("col_indices", TORCH_FN(at::native::col_indices_sparse_csr));
  library.impl("ccol_indices", TORCH_FN(at::native::ccol_indices_sparse_csr));
  library.impl("row_indices", TORCH_FN(at::native::row_indices_sparse_csr));
}

}  // namespace

void RegisterSparseLocal(torch::Library& coo, torch::Library& compressed) {
  RegisterCoo(coo);
  RegisterCompressed(compressed);
}

}  // namespace flagos::client
