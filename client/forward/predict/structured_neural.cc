// SPDX-License-Identifier: Apache-2.0
// Pooling, padding, resampling and losses.
#include <ATen/ops/_upsample_bicubic2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bicubic2d_aa_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_meta.h>
#include <ATen/ops/adaptive_max_pool2d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool2d_meta.h>
#include <ATen/ops/adaptive_max_pool3d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool3d_meta.h>
#include <ATen/ops/avg_pool2d_backward_meta.h>
#include <ATen/ops/avg_pool2d_meta.h>
#include <ATen/ops/avg_pool3d_backward_meta.h>
#include <ATen/ops/avg_pool3d_meta.h>
#include <ATen/ops/fractional_max_pool2d_backward_meta.h>
#include <ATen/ops/fractional_max_pool2d_meta.h>
#include <ATen/ops/fractional_max_pool3d_meta.h>
#include <ATen/ops/max_pool2d_with_indices_backward_meta.h>
#include <ATen/ops/max_pool2d_with_indices_meta.h>
#include <ATen/ops/nll_loss_backward_meta.h>
#include <ATen/ops/nll_loss_forward_meta.h>
#include <ATen/ops/reflection_pad1d_backward_meta.h>
#include <ATen/ops/reflection_pad1d_meta.h>
#include <ATen/ops/reflection_pad3d_backward_meta.h>
#include <ATen/ops/reflection_pad3d_meta.h>
#include <ATen/ops/replication_pad1d_backward_meta.h>
#include <ATen/ops/replication_pad1d_meta.h>
#include <ATen/ops/replication_pad2d_meta.h>
#include <ATen/ops/replication_pad3d_meta.h>
#include <ATen/ops/slow_conv_transpose2d_meta.h>
#include <ATen/ops/upsample_bicubic2d_backward_meta.h>
#include <ATen/ops/upsample_bicubic2d_meta.h>
#include <ATen/ops/upsample_bilinear2d_backward_meta.h>
#include <ATen/ops/upsample_bilinear2d_meta.h>
#include <ATen/ops/upsample_linear1d_backward_meta.h>
#include <ATen/ops/upsample_linear1d_meta.h>
#include <ATen/ops/upsample_nearest1d_backward_meta.h>
#include <ATen/ops/upsample_nearest1d_meta.h>
#include <ATen/ops/upsample_nearest2d_backward_meta.h>
#include <ATen/ops/upsample_nearest2d_meta.h>
#include <ATen/ops/upsample_nearest3d_backward_meta.h>
#include <ATen/ops/upsample_nearest3d_meta.h>
#include <ATen/ops/upsample_trilinear3d_backward_meta.h>
#include <ATen/ops/upsample_trilinear3d_meta.h>

// Not in every version of PyTorch.
#if __has_include(<ATen/ops/_upsample_lanczos2d_aa_meta.h>)
#include <ATen/ops/_upsample_lanczos2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_lanczos2d_aa_meta.h>
#define FLAGOS_HAS_LANCZOS
#endif

#include "client/forward/predict/structured.h"
#include "client/forward/predict/tables.h"

namespace flagos::client {
namespace {

// The meta functions say nothing of channels last, which kernels keep of the argument `Kept`.
template <class Meta, size_t Kept = 0>
bool PredictPadded(Arguments arguments, Outcome& outcome) {
  return arguments[Kept].toTensor().is_contiguous() && PredictNew<Meta>(arguments, outcome);
}

}  // namespace

void AddNeural(PredictorRows& rows) {
  using namespace at::meta;  // NOLINT(build/namespaces)
  AddStructured<structured__upsample_bicubic2d_aa_backward>(rows, "_upsample_bicubic2d_aa_backward", "", "grad_input");
  AddStructured<structured__upsample_bicubic2d_aa>(rows, "_upsample_bicubic2d_aa");
  AddStructured<structured__upsample_bilinear2d_aa_backward>(rows, "_upsample_bilinear2d_aa_backward", "",
                                                             "grad_input");
  AddStructured<structured__upsample_bilinear2d_aa>(rows, "_upsample_bilinear2d_aa");
#ifdef FLAGOS_HAS_LANCZOS
  AddStructured<structured__upsample_lanczos2d_aa_backward>(rows, "_upsample_lanczos2d_aa_backward", "", "grad_input");
  AddStructured<structured__upsample_lanczos2d_aa>(rows, "_upsample_lanczos2d_aa");
#endif
  AddStructured<structured__upsample_nearest_exact1d_backward>(rows, "_upsample_nearest_exact1d_backward", "",
                                                               "grad_input");
  AddStructured<structured__upsample_nearest_exact1d>(rows, "_upsample_nearest_exact1d");
  AddStructured<structured__upsample_nearest_exact2d_backward>(rows, "_upsample_nearest_exact2d_backward", "",
                                                               "grad_input");
  AddStructured<structured__upsample_nearest_exact2d>(rows, "_upsample_nearest_exact2d");
  AddStructured<structured__upsample_nearest_exact3d_backward>(rows, "_upsample_nearest_exact3d_backward", "",
                                                               "grad_input");
  AddStructured<structured__upsample_nearest_exact3d>(rows, "_upsample_nearest_exact3d");
  AddStructured<structured_adaptive_max_pool2d_backward>(rows, "adaptive_max_pool2d_backward", "", "grad_input");
  AddStructured<structured_adaptive_max_pool2d>(rows, "adaptive_max_pool2d");
  AddStructured<structured_adaptive_max_pool3d_backward>(rows, "adaptive_max_pool3d_backward", "", "grad_input");
  AddStructured<structured_adaptive_max_pool3d>(rows, "adaptive_max_pool3d");
  AddStructured<structured_avg_pool2d_backward>(rows, "avg_pool2d_backward", "", "grad_input");
  AddStructured<structured_avg_pool2d>(rows, "avg_pool2d");
  AddStructured<structured_avg_pool3d_backward>(rows, "avg_pool3d_backward", "", "grad_input");
  AddStructured<structured_avg_pool3d>(rows, "avg_pool3d");
  AddStructured<structured_fractional_max_pool2d_backward>(rows, "fractional_max_pool2d_backward", "", "grad_input");
  AddStructured<structured_fractional_max_pool2d>(rows, "fractional_max_pool2d", "", "output");
  AddStructured<structured_fractional_max_pool3d>(rows, "fractional_max_pool3d", "", "output");
  AddStructured<structured_max_pool2d_with_indices_backward>(rows, "max_pool2d_with_indices_backward", "",
                                                             "grad_input");
  AddStructured<structured_max_pool2d_with_indices>(rows, "max_pool2d_with_indices");
  AddStructured<structured_nll_loss_backward>(rows, "nll_loss_backward", "", "grad_input");
  AddStructured<structured_nll_loss_forward>(rows, "nll_loss_forward", "", "output");
  AddStructured<structured_reflection_pad1d_backward>(rows, "reflection_pad1d_backward", "", "grad_input");
  AddStructured<structured_reflection_pad1d>(rows, "reflection_pad1d");
  rows.emplace_back("aten::reflection_pad3d_backward", &PredictPadded<structured_reflection_pad3d_backward, 1>);
  rows.emplace_back("aten::reflection_pad3d", &PredictPadded<structured_reflection_pad3d>);
  AddStructured<structured_replication_pad1d_backward>(rows, "replication_pad1d_backward", "", "grad_input");
  AddStructured<structured_replication_pad1d>(rows, "replication_pad1d");
  rows.emplace_back("aten::replication_pad2d", &PredictPadded<structured_replication_pad2d>);
  rows.emplace_back("aten::replication_pad3d", &PredictPadded<structured_replication_pad3d>);
  AddStructured<structured_slow_conv_transpose2d>(rows, "slow_conv_transpose2d");
  AddStructured<structured_upsample_bicubic2d_backward>(rows, "upsample_bicubic2d_backward", "", "grad_input");
  AddStructured<structured_upsample_bicubic2d>(rows, "upsample_bicubic2d");
  AddStructured<structured_upsample_bilinear2d_backward>(rows, "upsample_bilinear2d_backward", "", "grad_input");
  AddStructured<structured_upsample_bilinear2d>(rows, "upsample_bilinear2d");
  AddStructured<structured_upsample_linear1d_backward>(rows, "upsample_linear1d_backward", "", "grad_input");
  AddStructured<structured_upsample_linear1d>(rows, "upsample_linear1d");
  AddStructured<structured_upsample_nearest1d_backward>(rows, "upsample_nearest1d_backward", "", "grad_input");
  AddStructured<structured_upsample_nearest1d>(rows, "upsample_nearest1d");
  AddStructured<structured_upsample_nearest2d_backward>(rows, "upsample_nearest2d_backward", "", "grad_input");
  AddStructured<structured_upsample_nearest2d>(rows, "upsample_nearest2d");
  AddStructured<structured_upsample_nearest3d_backward>(rows, "upsample_nearest3d_backward", "", "grad_input");
  AddStructured<structured_upsample_nearest3d>(rows, "upsample_nearest3d");
  AddStructured<structured_upsample_trilinear3d_backward>(rows, "upsample_trilinear3d_backward", "", "grad_input");
  AddStructured<structured_upsample_trilinear3d>(rows, "upsample_trilinear3d");
}

}  // namespace flagos::client
