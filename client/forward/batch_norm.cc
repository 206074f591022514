// SPDX-License-Identifier: Apache-2.0
// Which kernel PyTorch's batch_norm calls: it knows by the tensor's device where cuDNN's may serve, which here is the
// executor's.
#include <ATen/ops/_batch_norm_impl_index_native.h>
#include <ATen/ops/cudnn_batch_norm.h>

#include <limits>
#include <optional>
#include <tuple>

#include "client/forward/local.h"

namespace flagos::client {
namespace {

using Result = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, int64_t>;

bool IsDefined(const std::optional<at::Tensor>& tensor) { return tensor && tensor->defined(); }

// The conditions under which PyTorch takes cuDNN's kernel on CUDA (ATen/native/Normalization.cpp).
bool SuitsCudnn(const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                const std::optional<at::Tensor>& mean, const std::optional<at::Tensor>& variance, bool training) {
  constexpr int64_t kMostTraining = 880801, kMostServing = 65535;  // of the first dimension
  if (!IsDefined(weight) || !IsDefined(bias) || input.dim() < 3) return false;
  const at::ScalarType type = input.scalar_type(), weights = weight->scalar_type();
  if (type == at::kBFloat16 || weights == at::kBFloat16 || (type == at::kHalf && weights != at::kFloat)) return false;
  const bool running = IsDefined(mean) && IsDefined(variance);
  const bool without = !IsDefined(mean) && !IsDefined(variance) && training;
  return (running || without) && input.size(0) <= (training ? kMostTraining : kMostServing) &&
         input.numel() < std::numeric_limits<int32_t>::max();
}

Result BatchNorm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                 const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
                 const std::optional<at::Tensor>& variance, bool training, double momentum, double epsilon,
                 bool cudnn_enabled) {
  static const bool has_cudnn = Forwarded("aten::cudnn_batch_norm");
  if (!has_cudnn || !cudnn_enabled || !SuitsCudnn(input, weight, bias, mean, variance, training)) {
    return at::native::_batch_norm_impl_index(input, weight, bias, mean, variance, training, momentum, epsilon,
                                              cudnn_enabled);
  }
  constexpr int64_t kCudnn = 1;  // PyTorch's number of it
  auto [output, saved_mean, saved_variance, reserve] = at::cudnn_batch_norm(
      input.contiguous(input.suggest_memory_format()), *weight, bias, mean, variance, training, momentum, epsilon);
  return {std::move(output), std::move(saved_mean), std::move(saved_variance), std::move(reserve), kCudnn};
}

}  // namespace

void RegisterBatchNorm(torch::Library& library) { library.impl("_batch_norm_impl_index", TORCH_FN(BatchNorm)); }

}  // namespace flagos::client
