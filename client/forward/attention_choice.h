// SPDX-License-Identifier: Apache-2.0
// Which of its fused kernels the executor would take for an attention: it alone knows the device.
#pragma once

#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace flagos::client {

struct Attention {
  const at::Tensor& query;
  const at::Tensor& key;
  const at::Tensor& value;
  const std::optional<at::Tensor>& mask;
  double dropout;
  bool causal;
  std::optional<double> scale;
  bool grouped;
};

// The executor's answer, asked once for each combination of shapes and settings of a thread; math where it has none.
at::SDPBackend AskForAttention(const Attention& attention);

}  // namespace flagos::client
