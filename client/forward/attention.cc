// SPDX-License-Identifier: Apache-2.0
// Which attention PyTorch's scaled_dot_product_attention composes or calls on the device.
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>

#include "client/forward/local.h"

namespace flagos::client {
namespace {

bool Forwarded(const char* name) {
  const auto handle = c10::Dispatcher::singleton().findSchema({name, ""});
  return handle && handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
}

// PyTorch's own choice for kernels that work in main memory, where the executor has that kernel; else composed.
int64_t ChooseAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const std::optional<at::Tensor>& mask, double dropout, bool causal, std::optional<double> scale,
                        bool grouped) {
  static const bool flash = Forwarded("aten::_scaled_dot_product_flash_attention_for_cpu");
  if (!flash) return static_cast<int64_t>(at::SDPBackend::math);
  return at::native::_fused_sdp_choice_cpp(query, key, value, mask, dropout, causal, scale, grouped);
}

// nn.TransformerEncoder asks this before it packs padded sequences into a nested tensor, which this device does not
// have: with "no" it goes on with the padded ones.
bool LeftAligned(const at::Tensor&, const at::Tensor&) { return false; }

}  // namespace

void RegisterAttention(torch::Library& library) {
  library.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(LeftAligned));
  // Its schema has keyword-only arguments, in the same order.
  library.impl("_fused_sdp_choice", TORCH_FN(ChooseAttention));
}

}  // namespace flagos::client

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &flagos::client::ChooseAttention)
}  // namespace at::native
