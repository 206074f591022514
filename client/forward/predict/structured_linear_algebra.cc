// SPDX-License-Identifier: Apache-2.0
// Matrix products and decompositions.
#include <ATen/ops/_addmm_activation_meta.h>
#include <ATen/ops/_linalg_det_meta.h>
#include <ATen/ops/_linalg_eigh_meta.h>
#include <ATen/ops/_linalg_slogdet_meta.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmv_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/linalg_cholesky_ex_meta.h>
#include <ATen/ops/linalg_cross_meta.h>
#include <ATen/ops/linalg_inv_ex_meta.h>
#include <ATen/ops/linalg_ldl_factor_ex_meta.h>
#include <ATen/ops/linalg_ldl_solve_meta.h>
#include <ATen/ops/linalg_lu_factor_ex_meta.h>
#include <ATen/ops/linalg_lu_meta.h>
#include <ATen/ops/linalg_qr_meta.h>
#include <ATen/ops/linalg_vector_norm_meta.h>
#include <ATen/ops/lu_unpack_meta.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/triangular_solve_meta.h>

#include "client/forward/predict/structured.h"
#include "client/forward/predict/tables.h"

namespace flagos::client {

void AddLinearAlgebra(PredictorRows& rows) {
  using namespace at::meta;  // NOLINT(build/namespaces)
  AddStructured<structured__addmm_activation>(rows, "_addmm_activation");
  AddStructured<structured__linalg_det>(rows, "_linalg_det", "", "result");
  AddStructured<structured__linalg_eigh>(rows, "_linalg_eigh", "", "eigenvalues");
  AddStructured<structured__linalg_slogdet>(rows, "_linalg_slogdet", "", "sign");
  // Not _linalg_svd: its strides are the library's that computes it, which the device has.
  AddStructured<structured_addmm>(rows, "addmm");
  AddStructured<structured_addmv>(rows, "addmv");
  AddStructured<structured_bmm>(rows, "bmm");
  AddStructured<structured_linalg_cholesky_ex>(rows, "linalg_cholesky_ex", "", "L");
  AddStructured<structured_linalg_cross>(rows, "linalg_cross");
  AddStructured<structured_linalg_inv_ex>(rows, "linalg_inv_ex", "", "inverse");
  AddStructured<structured_linalg_ldl_factor_ex>(rows, "linalg_ldl_factor_ex");
  AddStructured<structured_linalg_ldl_solve>(rows, "linalg_ldl_solve");
  AddStructured<structured_linalg_lu_factor_ex>(rows, "linalg_lu_factor_ex");
  AddStructured<structured_linalg_lu>(rows, "linalg_lu");
  AddStructured<structured_linalg_qr>(rows, "linalg_qr");
  AddStructured<structured_linalg_vector_norm>(rows, "linalg_vector_norm");
  AddStructured<structured_lu_unpack>(rows, "lu_unpack");
  AddStructured<structured_mm>(rows, "mm");
  // Its out= form gives tensors of the right sizes other strides.
  rows.emplace_back("aten::triangular_solve", &PredictNew<structured_triangular_solve>);
}

}  // namespace flagos::client
