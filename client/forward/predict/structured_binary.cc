// SPDX-License-Identifier: Apache-2.0
// Element by element, of two tensors or more.
#include <ATen/ops/add_meta.h>
#include <ATen/ops/addcdiv_meta.h>
#include <ATen/ops/addcmul_meta.h>
#include <ATen/ops/atan2_meta.h>
#include <ATen/ops/bitwise_and_meta.h>
#include <ATen/ops/bitwise_left_shift_meta.h>
#include <ATen/ops/bitwise_or_meta.h>
#include <ATen/ops/bitwise_right_shift_meta.h>
#include <ATen/ops/bitwise_xor_meta.h>
#include <ATen/ops/clamp_max_meta.h>
#include <ATen/ops/clamp_meta.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/copysign_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/fmax_meta.h>
#include <ATen/ops/fmin_meta.h>
#include <ATen/ops/fmod_meta.h>
#include <ATen/ops/gcd_meta.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/heaviside_meta.h>
#include <ATen/ops/hypot_meta.h>
#include <ATen/ops/igamma_meta.h>
#include <ATen/ops/igammac_meta.h>
#include <ATen/ops/lcm_meta.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/lerp_meta.h>
#include <ATen/ops/logaddexp2_meta.h>
#include <ATen/ops/logaddexp_meta.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/mse_loss_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/nextafter_meta.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/remainder_meta.h>
#include <ATen/ops/smooth_l1_loss_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_t_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_u_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_v_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_w_meta.h>
#include <ATen/ops/special_hermite_polynomial_h_meta.h>
#include <ATen/ops/special_hermite_polynomial_he_meta.h>
#include <ATen/ops/special_laguerre_polynomial_l_meta.h>
#include <ATen/ops/special_legendre_polynomial_p_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_meta.h>
#include <ATen/ops/special_xlog1py_meta.h>
#include <ATen/ops/special_zeta_meta.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/xlogy_meta.h>

#include <ATen/core/Reduction.h>

#include <vector>

#include "client/forward/predict/structured.h"
#include "client/forward/predict/tables.h"

namespace flagos::client {
namespace {

// (self, target, reduction, ...) -> loss. PyTorch's meta functions resize what is reduced, and with deterministic
// algorithms a resized tensor is filled, for which a twin has no memory: they are asked for the loss of each element.
template <class Meta>
bool PredictLoss(Arguments arguments, Outcome& outcome) {
  constexpr size_t kReduction = 2;
  const int64_t reduction = arguments[kReduction].toInt();
  if (reduction < at::Reduction::None || reduction >= at::Reduction::END) return false;
  std::vector<c10::IValue> each(arguments.begin(), arguments.end());
  each[kReduction] = static_cast<int64_t>(at::Reduction::None);
  const at::Tensor loss = RunMeta<Meta>(each)[0];
  outcome.outputs = {reduction == at::Reduction::None ? NewOutput(loss) : NewOutput({}, loss.scalar_type())};
  return true;
}

}  // namespace

void AddBinary(PredictorRows& rows) {
  using namespace at::meta;  // NOLINT(build/namespaces)
  AddStructured<structured_add_Tensor>(rows, "add", "Tensor");
  AddStructured<structured_addcdiv>(rows, "addcdiv");
  AddStructured<structured_addcmul>(rows, "addcmul");
  AddStructured<structured_atan2>(rows, "atan2");
  AddStructured<structured_bitwise_and_Tensor>(rows, "bitwise_and", "Tensor", "Tensor_out");
  AddStructured<structured_bitwise_left_shift_Tensor>(rows, "bitwise_left_shift", "Tensor", "Tensor_out");
  AddStructured<structured_bitwise_or_Tensor>(rows, "bitwise_or", "Tensor", "Tensor_out");
  AddStructured<structured_bitwise_right_shift_Tensor>(rows, "bitwise_right_shift", "Tensor", "Tensor_out");
  AddStructured<structured_bitwise_xor_Tensor>(rows, "bitwise_xor", "Tensor", "Tensor_out");
  AddStructured<structured_clamp_max>(rows, "clamp_max");
  AddStructured<structured_clamp_max_Tensor>(rows, "clamp_max", "Tensor", "Tensor_out");
  AddStructured<structured_clamp>(rows, "clamp");
  AddStructured<structured_clamp_Tensor>(rows, "clamp", "Tensor", "Tensor_out");
  AddStructured<structured_clamp_min>(rows, "clamp_min");
  AddStructured<structured_clamp_min_Tensor>(rows, "clamp_min", "Tensor", "Tensor_out");
  AddStructured<structured_copysign_Tensor>(rows, "copysign", "Tensor");
  AddStructured<structured_div_Tensor>(rows, "div", "Tensor");
  AddStructured<structured_div_Tensor_mode>(rows, "div", "Tensor_mode", "out_mode");
  AddStructured<structured_eq_Scalar>(rows, "eq", "Scalar", "Scalar_out");
  AddStructured<structured_eq_Tensor>(rows, "eq", "Tensor", "Tensor_out");
  AddStructured<structured_fmax>(rows, "fmax");
  AddStructured<structured_fmin>(rows, "fmin");
  AddStructured<structured_fmod_Tensor>(rows, "fmod", "Tensor", "Tensor_out");
  AddStructured<structured_gcd>(rows, "gcd");
  AddStructured<structured_ge_Scalar>(rows, "ge", "Scalar", "Scalar_out");
  AddStructured<structured_ge_Tensor>(rows, "ge", "Tensor", "Tensor_out");
  AddStructured<structured_gt_Scalar>(rows, "gt", "Scalar", "Scalar_out");
  AddStructured<structured_gt_Tensor>(rows, "gt", "Tensor", "Tensor_out");
  AddStructured<structured_heaviside>(rows, "heaviside");
  AddStructured<structured_hypot>(rows, "hypot");
  AddStructured<structured_igamma>(rows, "igamma");
  AddStructured<structured_igammac>(rows, "igammac");
  AddStructured<structured_lcm>(rows, "lcm");
  AddStructured<structured_le_Scalar>(rows, "le", "Scalar", "Scalar_out");
  AddStructured<structured_le_Tensor>(rows, "le", "Tensor", "Tensor_out");
  AddStructured<structured_lerp_Scalar>(rows, "lerp", "Scalar", "Scalar_out");
  AddStructured<structured_lerp_Tensor>(rows, "lerp", "Tensor", "Tensor_out");
  AddStructured<structured_logaddexp2>(rows, "logaddexp2");
  AddStructured<structured_logaddexp>(rows, "logaddexp");
  AddStructured<structured_lt_Scalar>(rows, "lt", "Scalar", "Scalar_out");
  AddStructured<structured_lt_Tensor>(rows, "lt", "Tensor", "Tensor_out");
  AddStructured<structured_maximum>(rows, "maximum");
  AddStructured<structured_minimum>(rows, "minimum");
  rows.emplace_back("aten::mse_loss", &PredictLoss<structured_mse_loss>);
  AddStructured<structured_mul_Tensor>(rows, "mul", "Tensor");
  AddStructured<structured_ne_Scalar>(rows, "ne", "Scalar", "Scalar_out");
  AddStructured<structured_ne_Tensor>(rows, "ne", "Tensor", "Tensor_out");
  AddStructured<structured_nextafter>(rows, "nextafter");
  AddStructured<structured_pow_Tensor_Tensor>(rows, "pow", "Tensor_Tensor", "Tensor_Tensor_out");
  AddStructured<structured_pow_Scalar>(rows, "pow", "Scalar", "Scalar_out");
  AddStructured<structured_pow_Tensor_Scalar>(rows, "pow", "Tensor_Scalar", "Tensor_Scalar_out");
  AddStructured<structured_remainder_Tensor>(rows, "remainder", "Tensor", "Tensor_out");
  rows.emplace_back("aten::smooth_l1_loss", &PredictLoss<structured_smooth_l1_loss>);
  AddStructured<structured_special_chebyshev_polynomial_t>(rows, "special_chebyshev_polynomial_t");
  AddStructured<structured_special_chebyshev_polynomial_u>(rows, "special_chebyshev_polynomial_u");
  AddStructured<structured_special_chebyshev_polynomial_v>(rows, "special_chebyshev_polynomial_v");
  AddStructured<structured_special_chebyshev_polynomial_w>(rows, "special_chebyshev_polynomial_w");
  AddStructured<structured_special_hermite_polynomial_h>(rows, "special_hermite_polynomial_h");
  AddStructured<structured_special_hermite_polynomial_he>(rows, "special_hermite_polynomial_he");
  AddStructured<structured_special_laguerre_polynomial_l>(rows, "special_laguerre_polynomial_l");
  AddStructured<structured_special_legendre_polynomial_p>(rows, "special_legendre_polynomial_p");
  AddStructured<structured_special_shifted_chebyshev_polynomial_t>(rows, "special_shifted_chebyshev_polynomial_t");
  AddStructured<structured_special_shifted_chebyshev_polynomial_u>(rows, "special_shifted_chebyshev_polynomial_u");
  AddStructured<structured_special_shifted_chebyshev_polynomial_v>(rows, "special_shifted_chebyshev_polynomial_v");
  AddStructured<structured_special_shifted_chebyshev_polynomial_w>(rows, "special_shifted_chebyshev_polynomial_w");
  AddStructured<structured_special_xlog1py>(rows, "special_xlog1py");
  AddStructured<structured_special_zeta>(rows, "special_zeta");
  AddStructured<structured_sub_Tensor>(rows, "sub", "Tensor");
  AddStructured<structured_xlogy_Tensor>(rows, "xlogy", "Tensor", "OutTensor");
}

}  // namespace flagos::client
