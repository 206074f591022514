// SPDX-License-Identifier: Apache-2.0
// Which attention PyTorch's scaled_dot_product_attention composes or calls on the device.
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>

#include <array>
#include <tuple>
#include <utility>

#include "client/forward/attention_choice.h"
#include "client/forward/local.h"

namespace flagos::client {
namespace {

// The choice as PyTorch carries it out for a device like this, which calls flash attention by the CPU's name or, where
// the executor's is another, by ours (FlashAttention below).
at::SDPBackend AsCarriedOut(at::SDPBackend backend, const at::Tensor& query) {
  switch (backend) {
    // PyTorch pads heads of odd sizes for devices that it knows.
    case at::SDPBackend::flash_attention:
      return query.size(-1) % 8 == 0 ? at::SDPBackend::overrideable : at::SDPBackend::math;
    case at::SDPBackend::efficient_attention:
    case at::SDPBackend::cudnn_attention: return backend;
    default: return at::SDPBackend::math;
  }
}

int64_t ChooseAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const std::optional<at::Tensor>& mask, double dropout, bool causal, std::optional<double> scale,
                        bool grouped) {
  // PyTorch's own choice for kernels that work in main memory.
  static const bool in_main_memory = Forwarded("aten::_scaled_dot_product_flash_attention_for_cpu");
  if (in_main_memory)
    return at::native::_fused_sdp_choice_cpp(query, key, value, mask, dropout, causal, scale, grouped);
  static const bool flash = Forwarded("aten::_scaled_dot_product_flash_attention");
  if (!flash) return static_cast<int64_t>(at::SDPBackend::math);
  const auto backend = AskForAttention({query, key, value, mask, dropout, causal, scale, grouped});
  return static_cast<int64_t>(AsCarriedOut(backend, query));
}

using FusedResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                               at::Tensor, at::Tensor>;

// PyTorch's attention for a device's own kernel: the executor's flash attention, which takes no mask.
FusedResult FlashAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const std::optional<at::Tensor>&, double dropout, bool causal, bool debug,
                           std::optional<double> scale) {
  return at::_scaled_dot_product_flash_attention(query, key, value, dropout, causal, debug, scale);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> FlashAttentionBackward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor&, std::array<bool, 4>, const at::Tensor& output, const at::Tensor& logsumexp,
    const at::Tensor& cumulative_query, const at::Tensor& cumulative_key, c10::SymInt most_query, c10::SymInt most_key,
    double dropout, bool causal, const at::Tensor& seed, const at::Tensor& offset, std::optional<double> scale) {
  auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_flash_attention_backward_symint(
      gradient, query, key, value, output, logsumexp, cumulative_query, cumulative_key, std::move(most_query),
      std::move(most_key), dropout, causal, seed, offset, scale);
  return {std::move(grad_query), std::move(grad_key), std::move(grad_value), at::Tensor()};
}

// nn.TransformerEncoder asks this before it packs padded sequences into a nested tensor, which this device does not
// have: with "no" it goes on with the padded ones.
bool LeftAligned(const at::Tensor&, const at::Tensor&) { return false; }

}  // namespace

void RegisterAttention(torch::Library& library) {
  library.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(LeftAligned));
  library.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(FlashAttention));
  library.impl("_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(FlashAttentionBackward));
  // Its schema has keyword-only arguments, in the same order.
  library.impl("_fused_sdp_choice", TORCH_FN(ChooseAttention));
}

}  // namespace flagos::client

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &flagos::client::ChooseAttention)
}  // namespace at::native
