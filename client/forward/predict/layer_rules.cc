// SPDX-License-Identifier: Apache-2.0
// Layers: normalisation, convolution, attention. In full precision only where the type of statistics differs from
// device to device in half precision.
#include <algorithm>

#include "client/forward/predict/rules.h"
#include "client/forward/predict/unbox.h"

namespace flagos::client {
namespace {

bool IsFullPrecision(const at::Tensor& tensor) {
  return tensor.scalar_type() == c10::ScalarType::Float || tensor.scalar_type() == c10::ScalarType::Double;
}

bool MaskAt(Arguments arguments, size_t argument, size_t index) {
  return arguments[argument].toListRef()[index].toBool();
}

// Of an optional parameter's gradient: undefined where the mask does not want it.
bool PushGradient(Outcome& outcome, bool wanted, const at::Tensor& parameter) {
  if (wanted && !parameter.defined()) return false;
  outcome.outputs.push_back(wanted ? OutputLike(parameter) : UndefinedOutput());
  return true;
}

// (input, normalized_shape, weight, bias, eps) -> output, mean, rstd
bool LayerNorm(Arguments arguments, Outcome& outcome) {
  const at::Tensor& input = TensorAt(arguments, 0);
  const c10::DimVector shape = IntsOf(arguments[1]);
  const auto dims = static_cast<int64_t>(shape.size());
  if (!IsFullPrecision(input) || dims == 0 || dims > input.dim()) return false;
  if (input.sizes().slice(static_cast<size_t>(input.dim() - dims)) != at::IntArrayRef(shape)) return false;
  for (const size_t i : {2, 3}) {
    const at::Tensor& parameter = TensorAt(arguments, i);
    if (parameter.defined() && (parameter.sizes() != at::IntArrayRef(shape) || parameter.dtype() != input.dtype()))
      return false;
  }
  c10::DimVector statistics(input.sizes());
  std::fill(statistics.end() - dims, statistics.end(), 1);
  outcome.outputs = {NewOutput(input.sizes(), input.scalar_type()), NewOutput(statistics, input.scalar_type()),
                     NewOutput(statistics, input.scalar_type())};
  return true;
}

// (grad, input, normalized_shape, mean, rstd, weight, bias, mask) -> gradients of input, weight, bias
bool LayerNormBackward(Arguments arguments, Outcome& outcome) {
  const at::Tensor& input = TensorAt(arguments, 1);
  if (!IsFullPrecision(input)) return false;
  outcome.outputs.push_back(MaskAt(arguments, 7, 0) ? NewOutput(input.sizes(), input.scalar_type())
                                                    : UndefinedOutput());
  return PushGradient(outcome, MaskAt(arguments, 7, 1), TensorAt(arguments, 5)) &&
         PushGradient(outcome, MaskAt(arguments, 7, 2), TensorAt(arguments, 6));
}

// (input, weight, bias, N, C, HxW, groups, eps) -> output, mean, rstd
bool GroupNorm(Arguments arguments, Outcome& outcome) {
  const at::Tensor& input = TensorAt(arguments, 0);
  if (!IsFullPrecision(input) || !input.is_contiguous()) return false;
  const c10::DimVector statistics{arguments[3].toInt(), arguments[6].toInt()};
  outcome.outputs = {NewOutput(input.sizes(), input.scalar_type()), NewOutput(statistics, input.scalar_type()),
                     NewOutput(statistics, input.scalar_type())};
  return true;
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps) -> output, mean, rstd
bool BatchNorm(Arguments arguments, Outcome& outcome) {
  const at::Tensor& input = TensorAt(arguments, 0);
  if (!IsFullPrecision(input) || input.dim() < 2 || !input.is_non_overlapping_and_dense()) return false;
  // Without training, the statistics that it saves have no entry on the CPU and all of them on CUDA.
  if (!arguments[5].toBool()) return false;
  for (const size_t i : {1, 2, 3, 4}) {
    const at::Tensor& parameter = TensorAt(arguments, i);
    if (parameter.defined() && (parameter.dtype() != input.dtype() || parameter.numel() != input.size(1))) return false;
  }
  const int64_t channels = input.size(1);
  outcome.outputs = {OutputLike(input), NewOutput({channels}, input.scalar_type()),
                     NewOutput({channels}, input.scalar_type())};
  return true;
}

// (grad, input, weight, running_mean, running_var, mean, rstd, train, eps, mask) -> gradients of input, weight, bias
bool BatchNormBackward(Arguments arguments, Outcome& outcome) {
  const at::Tensor& input = TensorAt(arguments, 1);
  const at::Tensor& weight = TensorAt(arguments, 2);
  if (!IsFullPrecision(input) || input.dim() < 2 || !input.is_non_overlapping_and_dense()) return false;
  outcome.outputs.push_back(MaskAt(arguments, 9, 0) ? OutputLike(input) : UndefinedOutput());
  return PushGradient(outcome, MaskAt(arguments, 9, 1), weight) &&
         PushGradient(outcome, MaskAt(arguments, 9, 2), weight);
}

// Convolutions keep channels last where either operand has it.
std::optional<c10::MemoryFormat> ConvolutionFormat(const at::Tensor& input, const at::Tensor& weight) {
  const auto input_format = input.suggest_memory_format();
  const auto format = input_format == c10::MemoryFormat::Contiguous ? weight.suggest_memory_format() : input_format;
  if (input.dim() == 3 && (!input.is_contiguous() || !weight.is_contiguous())) return std::nullopt;
  return format;
}

Output OutputIn(c10::MemoryFormat format, c10::IntArrayRef sizes, c10::ScalarType dtype) {
  at::Tensor twin = MetaTensor(sizes, c10::contiguous_strides(sizes), c10::scalarTypeToTypeMeta(dtype));
  twin.unsafeGetTensorImpl()->empty_tensor_restride(format);
  return NewOutput(twin);
}

// One value for all `dims` or one for each, none below `least` and none so large that sizes computed of it overflow.
bool AreSteps(const c10::DimVector& list, size_t dims, int64_t least) {
  constexpr int64_t kMost = 1 << 20;
  return (list.size() == 1 || list.size() == dims) &&
         std::ranges::all_of(list, [&](int64_t value) { return value >= least && value <= kMost; });
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
bool Convolution(Arguments arguments, Outcome& outcome) {
  const at::Tensor& input = TensorAt(arguments, 0);
  const at::Tensor& weight = TensorAt(arguments, 1);
  const bool transposed = arguments[6].toBool();
  const int64_t groups = arguments[8].toInt();
  const auto format = ConvolutionFormat(input, weight);
  // Which kernels of transposed ones keep channels last is theirs to say.
  if (format && transposed && *format != c10::MemoryFormat::Contiguous) return false;
  if (!format || input.dim() != weight.dim() || input.dim() < 3 || input.numel() == 0 || weight.numel() == 0)
    return false;
  if (input.scalar_type() != weight.scalar_type() || groups <= 0 ||
      input.size(1) != (transposed ? weight.size(0) : weight.size(1) * groups)) {
    return false;
  }
  const c10::DimVector stride = IntsOf(arguments[3]);
  const c10::DimVector padding = IntsOf(arguments[4]);
  const c10::DimVector dilation = IntsOf(arguments[5]);
  const c10::DimVector output_padding = IntsOf(arguments[7]);
  const auto dims = static_cast<size_t>(input.dim() - 2);
  if (!AreSteps(stride, dims, 1) || !AreSteps(padding, dims, 0) || !AreSteps(dilation, dims, 1)) return false;
  if (transposed && !AreSteps(output_padding, dims, 0)) return false;
  c10::DimVector sizes{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  for (int64_t dim = 2; dim < input.dim(); ++dim) {
    const auto of = [&](const c10::DimVector& list) {
      return list[list.size() == 1 ? 0 : static_cast<size_t>(dim - 2)];
    };
    if (transposed && of(output_padding) >= std::max(of(stride), of(dilation))) return false;
    const int64_t kernel = of(dilation) * (weight.size(dim) - 1);
    const int64_t size = transposed
                             ? (input.size(dim) - 1) * of(stride) - 2 * of(padding) + kernel + of(output_padding) + 1
                             : (input.size(dim) + 2 * of(padding) - kernel - 1) / of(stride) + 1;
    if (size <= 0 || (!transposed && input.size(dim) + 2 * of(padding) <= kernel)) return false;
    sizes.push_back(size);
  }
  const at::Tensor& bias = TensorAt(arguments, 2);
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != sizes[1] || bias.dtype() != input.dtype())) return false;
  outcome.outputs.push_back(OutputIn(*format, sizes, input.scalar_type()));
  return true;
}

// (query, key, value, dropout, causal, mask, scale) -> output, logsumexp
bool FlashAttention(Arguments arguments, Outcome& outcome) {
  const at::Tensor& query = TensorAt(arguments, 0);
  const at::Tensor& value = TensorAt(arguments, 2);
  if (query.dim() != 4 || value.dim() != 4 || query.size(3) != value.size(3) || !query.is_non_overlapping_and_dense())
    return false;
  const int64_t batch = query.size(0);
  const int64_t heads = query.size(1);
  const int64_t length = query.size(2);
  const auto sums = query.scalar_type() == c10::ScalarType::Double ? c10::ScalarType::Double : c10::ScalarType::Float;
  outcome.outputs = {OutputLike(query), NewOutput({batch, heads, length}, {length * heads, 1, heads}, sums)};
  return true;
}

// The gradient of a (batch, heads, length, size) operand lies as (batch, length, heads, size).
Output AttentionGradient(const at::Tensor& operand) {
  const int64_t heads = operand.size(1);
  const int64_t size = operand.size(3);
  return NewOutput(operand.sizes(), {operand.size(2) * heads * size, size, heads * size, 1}, operand.scalar_type());
}

// (grad, query, key, value, output, logsumexp, ...) -> gradients of query, key, value
bool FlashAttentionBackward(Arguments arguments, Outcome& outcome) {
  for (const size_t i : {1, 2, 3}) {
    const at::Tensor& operand = TensorAt(arguments, i);
    if (operand.dim() != 4) return false;
    outcome.outputs.push_back(AttentionGradient(operand));
  }
  return true;
}

}  // namespace

void AddLayerRules(PredictorRows& rows) {
  rows.insert(rows.end(), {
                              {"aten::native_layer_norm", &LayerNorm},
                              {"aten::native_layer_norm_backward", &LayerNormBackward},
                              {"aten::native_group_norm", &GroupNorm},
                              {"aten::native_batch_norm", &BatchNorm},
                              {"aten::native_batch_norm_backward", &BatchNormBackward},
                              {"aten::convolution", &Convolution},
                              {"aten::_scaled_dot_product_flash_attention_for_cpu", &FlashAttention},
                              {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", &FlashAttentionBackward},
                          });
}

}  // namespace flagos::client
