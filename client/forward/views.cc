// SPDX-License-Identifier: Apache-2.0
// Views: metadata over a storage that exists, so they never cross to the executor.
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

#include "client/forward/local.h"

namespace flagos::client {
namespace {

at::Tensor AsStrided(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                     std::optional<c10::SymInt> offset) {
  std::optional<int64_t> start;
  if (offset) start = offset->guard_int(__FILE__, __LINE__);
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
                                           start);
}

at::Tensor View(const at::Tensor& self, c10::SymIntArrayRef sizes) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes));
}

at::Tensor ReshapeAlias(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}

bool IsDense(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided && (tensor.device().is_cpu() || tensor.device().is_privateuseone()) &&
         !tensor.is_quantized();
}

// Lets `parameter.data = tensor` change the device, as between PyTorch's own: Module.to() keeps its parameters by that.
bool HasCompatibleShallowCopyType(const at::Tensor& self, const at::Tensor& from) {
  return IsDense(self) && IsDense(from);
}

}  // namespace

void RegisterViews(torch::Library& library) {
  library.impl("as_strided", TORCH_FN(AsStrided));
  library.impl("view", TORCH_FN(View));
  library.impl("_reshape_alias", TORCH_FN(ReshapeAlias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  library.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  library.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  library.impl("_has_compatible_shallow_copy_type", TORCH_FN(HasCompatibleShallowCopyType));
}

}  // namespace flagos::client
