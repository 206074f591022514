// SPDX-License-Identifier: Apache-2.0
// The cells that PyTorch's LSTM and GRU call, one a step, on every device but its own CPU: composed here of what any
// executor has. Gates come in PyTorch's order: input, forget, cell, output; reset, update, new.
#include <ATen/Functions.h>

#include "client/forward/local.h"

namespace flagos::client {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor Sum(at::Tensor gates, const at::Tensor& more, const OptionalTensor& bias, const OptionalTensor& more_bias) {
  gates = gates + more;
  if (bias && bias->defined()) gates = gates + *bias + *more_bias;
  return gates;
}

at::Tensor BiasGradient(const at::Tensor& gates, bool has_bias) { return has_bias ? at::sum(gates, 0) : at::Tensor(); }

// sigmoid' and tanh' in terms of their results.
at::Tensor SigmoidSlope(const at::Tensor& s) { return s * (1 - s); }
at::Tensor TanhSlope(const at::Tensor& t) { return 1 - t * t; }

// The workspace holds the gates after their functions.
std::tuple<at::Tensor, at::Tensor, at::Tensor> Lstm(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                    const at::Tensor& cx, const OptionalTensor& input_bias,
                                                    const OptionalTensor& hidden_bias) {
  const auto raw = at::chunk(Sum(input_gates, hidden_gates, input_bias, hidden_bias), 4, 1);
  const at::Tensor in = at::sigmoid(raw[0]), forget = at::sigmoid(raw[1]), cell = at::tanh(raw[2]),
                   out = at::sigmoid(raw[3]);
  at::Tensor cy = forget * cx + in * cell;
  at::Tensor hy = out * at::tanh(cy);
  return {std::move(hy), std::move(cy), at::cat({in, forget, cell, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> LstmBackward(const OptionalTensor& grad_hy,
                                                            const OptionalTensor& grad_cy, const at::Tensor& cx,
                                                            const at::Tensor& cy, const at::Tensor& workspace,
                                                            bool has_bias) {
  const bool from_h = grad_hy && grad_hy->defined();
  const bool from_c = grad_cy && grad_cy->defined();
  if (!from_h && !from_c) return {};
  const auto gates = at::chunk(workspace, 4, 1);
  const at::Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const at::Tensor squashed = at::tanh(cy);
  at::Tensor grad_c, grad_out = at::zeros_like(out);
  if (from_h) {
    grad_c = *grad_hy * out * TanhSlope(squashed);
    grad_out = *grad_hy * squashed * SigmoidSlope(out);
  }
  if (from_c) grad_c = grad_c.defined() ? grad_c + *grad_cy : *grad_cy;
  const at::Tensor grad_gates = at::cat(
      {grad_c * cell * SigmoidSlope(in), grad_c * cx * SigmoidSlope(forget), grad_c * in * TanhSlope(cell), grad_out},
      1);
  return {grad_gates, grad_c * forget, BiasGradient(grad_gates, has_bias)};
}

// The workspace holds reset, update and new, the old state, and the hidden gate of new before it is reset.
std::tuple<at::Tensor, at::Tensor> Gru(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                       const at::Tensor& hx, const OptionalTensor& input_bias,
                                       const OptionalTensor& hidden_bias) {
  const bool has_bias = input_bias && input_bias->defined();
  const auto from_input = at::chunk(has_bias ? input_gates + *input_bias : input_gates, 3, 1);
  const auto from_hidden = at::chunk(has_bias ? hidden_gates + *hidden_bias : hidden_gates, 3, 1);
  const at::Tensor reset = at::sigmoid(from_input[0] + from_hidden[0]);
  const at::Tensor update = at::sigmoid(from_input[1] + from_hidden[1]);
  const at::Tensor fresh = at::tanh(from_input[2] + reset * from_hidden[2]);
  at::Tensor hy = fresh + update * (hx - fresh);
  return {std::move(hy), at::cat({reset, update, fresh, hx, from_hidden[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> GruBackward(const at::Tensor& grad_hy,
                                                                                   const at::Tensor& workspace,
                                                                                   bool has_bias) {
  const auto kept = at::chunk(workspace, 5, 1);
  const at::Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &hx = kept[3], &hidden_fresh = kept[4];
  const at::Tensor grad_update = grad_hy * (hx - fresh) * SigmoidSlope(update);
  const at::Tensor grad_fresh = grad_hy * (1 - update) * TanhSlope(fresh);
  const at::Tensor grad_reset = grad_fresh * hidden_fresh * SigmoidSlope(reset);
  const at::Tensor grad_input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  const at::Tensor grad_hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
  return {grad_input, grad_hidden, grad_hy * update, BiasGradient(grad_input, has_bias),
          BiasGradient(grad_hidden, has_bias)};
}

}  // namespace

void RegisterRecurrentCells(torch::Library& library) {
  library.impl("_thnn_fused_lstm_cell", TORCH_FN(Lstm));
  library.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(LstmBackward));
  library.impl("_thnn_fused_gru_cell", TORCH_FN(Gru));
  library.impl("_thnn_fused_gru_cell_backward", TORCH_FN(GruBackward));
}

}  // namespace flagos::client
