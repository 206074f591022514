// SPDX-License-Identifier: Apache-2.0
// Element by element, of one tensor; activations and their gradients.
#include <ATen/ops/acos_meta.h>
#include <ATen/ops/acosh_meta.h>
#include <ATen/ops/asin_meta.h>
#include <ATen/ops/asinh_meta.h>
#include <ATen/ops/atan_meta.h>
#include <ATen/ops/atanh_meta.h>
#include <ATen/ops/bitwise_not_meta.h>
#include <ATen/ops/ceil_meta.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/cosh_meta.h>
#include <ATen/ops/digamma_meta.h>
#include <ATen/ops/elu_backward_meta.h>
#include <ATen/ops/elu_meta.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/erfc_meta.h>
#include <ATen/ops/erfinv_meta.h>
#include <ATen/ops/exp2_meta.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/expm1_meta.h>
#include <ATen/ops/floor_meta.h>
#include <ATen/ops/frac_meta.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/hardshrink_backward_meta.h>
#include <ATen/ops/hardshrink_meta.h>
#include <ATen/ops/hardsigmoid_backward_meta.h>
#include <ATen/ops/hardsigmoid_meta.h>
#include <ATen/ops/i0_meta.h>
#include <ATen/ops/isneginf_meta.h>
#include <ATen/ops/isposinf_meta.h>
#include <ATen/ops/leaky_relu_backward_meta.h>
#include <ATen/ops/leaky_relu_meta.h>
#include <ATen/ops/lgamma_meta.h>
#include <ATen/ops/log10_meta.h>
#include <ATen/ops/log1p_meta.h>
#include <ATen/ops/log2_meta.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/logit_backward_meta.h>
#include <ATen/ops/mish_meta.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/polygamma_meta.h>
#include <ATen/ops/reciprocal_meta.h>
#include <ATen/ops/round_meta.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/sgn_meta.h>
#include <ATen/ops/sigmoid_backward_meta.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/sign_meta.h>
#include <ATen/ops/signbit_meta.h>
#include <ATen/ops/silu_backward_meta.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sinc_meta.h>
#include <ATen/ops/sinh_meta.h>
#include <ATen/ops/softplus_backward_meta.h>
#include <ATen/ops/softplus_meta.h>
#include <ATen/ops/softshrink_backward_meta.h>
#include <ATen/ops/softshrink_meta.h>
#include <ATen/ops/special_airy_ai_meta.h>
#include <ATen/ops/special_bessel_j0_meta.h>
#include <ATen/ops/special_bessel_j1_meta.h>
#include <ATen/ops/special_bessel_y0_meta.h>
#include <ATen/ops/special_bessel_y1_meta.h>
#include <ATen/ops/special_entr_meta.h>
#include <ATen/ops/special_erfcx_meta.h>
#include <ATen/ops/special_i0e_meta.h>
#include <ATen/ops/special_i1_meta.h>
#include <ATen/ops/special_i1e_meta.h>
#include <ATen/ops/special_log_ndtr_meta.h>
#include <ATen/ops/special_modified_bessel_i0_meta.h>
#include <ATen/ops/special_modified_bessel_i1_meta.h>
#include <ATen/ops/special_modified_bessel_k0_meta.h>
#include <ATen/ops/special_modified_bessel_k1_meta.h>
#include <ATen/ops/special_ndtri_meta.h>
#include <ATen/ops/special_scaled_modified_bessel_k0_meta.h>
#include <ATen/ops/special_scaled_modified_bessel_k1_meta.h>
#include <ATen/ops/special_spherical_bessel_j0_meta.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/tan_meta.h>
#include <ATen/ops/tanh_backward_meta.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <ATen/ops/threshold_meta.h>
#include <ATen/ops/trunc_meta.h>

#include "client/forward/predict/structured.h"
#include "client/forward/predict/tables.h"

namespace flagos::client {

void AddUnary(PredictorRows& rows) {
  using namespace at::meta;  // NOLINT(build/namespaces)
  AddStructured<structured_acos>(rows, "acos");
  AddStructured<structured_acosh>(rows, "acosh");
  AddStructured<structured_asin>(rows, "asin");
  AddStructured<structured_asinh>(rows, "asinh");
  AddStructured<structured_atan>(rows, "atan");
  AddStructured<structured_atanh>(rows, "atanh");
  AddStructured<structured_bitwise_not>(rows, "bitwise_not");
  AddStructured<structured_ceil>(rows, "ceil");
  AddStructured<structured_cos>(rows, "cos");
  AddStructured<structured_cosh>(rows, "cosh");
  AddStructured<structured_digamma>(rows, "digamma");
  AddStructured<structured_elu_backward>(rows, "elu_backward", "", "grad_input");
  AddStructured<structured_elu>(rows, "elu");
  AddStructured<structured_erf>(rows, "erf");
  AddStructured<structured_erfc>(rows, "erfc");
  AddStructured<structured_erfinv>(rows, "erfinv");
  AddStructured<structured_exp2>(rows, "exp2");
  AddStructured<structured_exp>(rows, "exp");
  AddStructured<structured_expm1>(rows, "expm1");
  AddStructured<structured_floor>(rows, "floor");
  AddStructured<structured_frac>(rows, "frac");
  AddStructured<structured_gelu_backward>(rows, "gelu_backward", "", "grad_input");
  AddStructured<structured_gelu>(rows, "gelu");
  AddStructured<structured_hardshrink_backward>(rows, "hardshrink_backward", "", "grad_input");
  AddStructured<structured_hardshrink>(rows, "hardshrink");
  AddStructured<structured_hardsigmoid_backward>(rows, "hardsigmoid_backward", "", "grad_input");
  AddStructured<structured_hardsigmoid>(rows, "hardsigmoid");
  AddStructured<structured_i0>(rows, "i0");
  AddStructured<structured_isneginf>(rows, "isneginf");
  AddStructured<structured_isposinf>(rows, "isposinf");
  AddStructured<structured_leaky_relu_backward>(rows, "leaky_relu_backward", "", "grad_input");
  AddStructured<structured_leaky_relu>(rows, "leaky_relu");
  AddStructured<structured_lgamma>(rows, "lgamma");
  AddStructured<structured_log10>(rows, "log10");
  AddStructured<structured_log1p>(rows, "log1p");
  AddStructured<structured_log2>(rows, "log2");
  AddStructured<structured_log>(rows, "log");
  AddStructured<structured_logit_backward>(rows, "logit_backward", "", "grad_input");
  AddStructured<structured_mish>(rows, "mish");
  AddStructured<structured_neg>(rows, "neg");
  AddStructured<structured_polygamma>(rows, "polygamma");
  AddStructured<structured_reciprocal>(rows, "reciprocal");
  AddStructured<structured_round>(rows, "round");
  AddStructured<structured_round_decimals>(rows, "round", "decimals", "decimals_out");
  AddStructured<structured_rsqrt>(rows, "rsqrt");
  AddStructured<structured_sgn>(rows, "sgn");
  AddStructured<structured_sigmoid_backward>(rows, "sigmoid_backward", "", "grad_input");
  AddStructured<structured_sigmoid>(rows, "sigmoid");
  AddStructured<structured_sign>(rows, "sign");
  AddStructured<structured_signbit>(rows, "signbit");
  AddStructured<structured_silu_backward>(rows, "silu_backward", "", "grad_input");
  AddStructured<structured_silu>(rows, "silu");
  AddStructured<structured_sin>(rows, "sin");
  AddStructured<structured_sinc>(rows, "sinc");
  AddStructured<structured_sinh>(rows, "sinh");
  AddStructured<structured_softplus_backward>(rows, "softplus_backward", "", "grad_input");
  AddStructured<structured_softplus>(rows, "softplus");
  AddStructured<structured_softshrink_backward>(rows, "softshrink_backward", "", "grad_input");
  AddStructured<structured_softshrink>(rows, "softshrink");
  AddStructured<structured_special_airy_ai>(rows, "special_airy_ai");
  AddStructured<structured_special_bessel_j0>(rows, "special_bessel_j0");
  AddStructured<structured_special_bessel_j1>(rows, "special_bessel_j1");
  AddStructured<structured_special_bessel_y0>(rows, "special_bessel_y0");
  AddStructured<structured_special_bessel_y1>(rows, "special_bessel_y1");
  AddStructured<structured_special_entr>(rows, "special_entr");
  AddStructured<structured_special_erfcx>(rows, "special_erfcx");
  AddStructured<structured_special_i0e>(rows, "special_i0e");
  AddStructured<structured_special_i1>(rows, "special_i1");
  AddStructured<structured_special_i1e>(rows, "special_i1e");
  AddStructured<structured_special_log_ndtr>(rows, "special_log_ndtr");
  AddStructured<structured_special_modified_bessel_i0>(rows, "special_modified_bessel_i0");
  AddStructured<structured_special_modified_bessel_i1>(rows, "special_modified_bessel_i1");
  AddStructured<structured_special_modified_bessel_k0>(rows, "special_modified_bessel_k0");
  AddStructured<structured_special_modified_bessel_k1>(rows, "special_modified_bessel_k1");
  AddStructured<structured_special_ndtri>(rows, "special_ndtri");
  AddStructured<structured_special_scaled_modified_bessel_k0>(rows, "special_scaled_modified_bessel_k0");
  AddStructured<structured_special_scaled_modified_bessel_k1>(rows, "special_scaled_modified_bessel_k1");
  AddStructured<structured_special_spherical_bessel_j0>(rows, "special_spherical_bessel_j0");
  AddStructured<structured_sqrt>(rows, "sqrt");
  AddStructured<structured_tan>(rows, "tan");
  AddStructured<structured_tanh_backward>(rows, "tanh_backward", "", "grad_input");
  AddStructured<structured_tanh>(rows, "tanh");
  AddStructured<structured_threshold_backward>(rows, "threshold_backward", "", "grad_input");
  AddStructured<structured_threshold>(rows, "threshold");
  AddStructured<structured_trunc>(rows, "trunc");
}

}  // namespace flagos::client
