// SPDX-License-Identifier: Apache-2.0
// Reductions, scans, sorting, and moving elements by index.
#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_meta.h>
#include <ATen/ops/all_meta.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/aminmax_meta.h>
#include <ATen/ops/any_meta.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmin_meta.h>
#include <ATen/ops/cat_meta.h>
#include <ATen/ops/cumprod_meta.h>
#include <ATen/ops/cumsum_meta.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/isin_meta.h>
#include <ATen/ops/max_meta.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/min_meta.h>
#include <ATen/ops/norm_meta.h>
#include <ATen/ops/prod_meta.h>
#include <ATen/ops/renorm_meta.h>
#include <ATen/ops/scatter_add_meta.h>
#include <ATen/ops/scatter_meta.h>
#include <ATen/ops/scatter_reduce_meta.h>
#include <ATen/ops/sort_meta.h>
#include <ATen/ops/sum_meta.h>
#include <ATen/ops/topk_meta.h>
#include <ATen/ops/tril_meta.h>
#include <ATen/ops/triu_meta.h>

#include "client/forward/predict/structured.h"
#include "client/forward/predict/tables.h"

namespace flagos::client {

void AddReductions(PredictorRows& rows) {
  using namespace at::meta;  // NOLINT(build/namespaces)
  AddStructured<structured__log_softmax_backward_data>(rows, "_log_softmax_backward_data");
  AddStructured<structured__log_softmax>(rows, "_log_softmax");
  AddStructured<structured__softmax_backward_data>(rows, "_softmax_backward_data");
  AddStructured<structured__softmax>(rows, "_softmax");
  AddStructured<structured_all_dim>(rows, "all", "dim");
  AddStructured<structured_all_dims>(rows, "all", "dims", "dims_out");
  AddStructured<structured_all>(rows, "all", "", "all_out");
  AddStructured<structured_amax>(rows, "amax");
  AddStructured<structured_amin>(rows, "amin");
  AddStructured<structured_aminmax>(rows, "aminmax");
  AddStructured<structured_any_dim>(rows, "any", "dim");
  AddStructured<structured_any_dims>(rows, "any", "dims", "dims_out");
  AddStructured<structured_any>(rows, "any", "", "all_out");
  AddStructured<structured_argmax>(rows, "argmax");
  AddStructured<structured_argmin>(rows, "argmin");
  AddStructured<structured_cat>(rows, "cat");
  AddStructured<structured_cumprod>(rows, "cumprod");
  AddStructured<structured_cumsum>(rows, "cumsum");
  AddStructured<structured_gather>(rows, "gather");
  AddStructured<structured_isin_Tensor_Tensor>(rows, "isin", "Tensor_Tensor", "Tensor_Tensor_out");
  AddStructured<structured_isin_Tensor_Scalar>(rows, "isin", "Tensor_Scalar", "Tensor_Scalar_out");
  AddStructured<structured_isin_Scalar_Tensor>(rows, "isin", "Scalar_Tensor", "Scalar_Tensor_out");
  AddStructured<structured_max_dim>(rows, "max", "dim", "dim_max");
  AddStructured<structured_mean_dim>(rows, "mean", "dim");
  AddStructured<structured_min_dim>(rows, "min", "dim", "dim_min");
  AddStructured<structured_norm_ScalarOpt_dim_dtype>(rows, "norm", "ScalarOpt_dim_dtype", "dtype_out");
  AddStructured<structured_norm_ScalarOpt_dim>(rows, "norm", "ScalarOpt_dim");
  AddStructured<structured_prod_dim_int>(rows, "prod", "dim_int", "int_out");
  AddStructured<structured_renorm>(rows, "renorm");
  AddStructured<structured_scatter_add>(rows, "scatter_add");
  AddStructured<structured_scatter_src>(rows, "scatter", "src", "src_out");
  AddStructured<structured_scatter_value>(rows, "scatter", "value", "value_out");
  AddStructured<structured_scatter_reduce>(rows, "scatter", "reduce", "reduce_out");
  AddStructured<structured_scatter_value_reduce>(rows, "scatter", "value_reduce", "value_reduce_out");
  AddStructured<structured_scatter_reduce_two>(rows, "scatter_reduce", "two", "two_out");
  AddStructured<structured_sort_stable>(rows, "sort", "stable", "values_stable");
  AddStructured<structured_sum_dim_IntList>(rows, "sum", "dim_IntList", "IntList_out");
  AddStructured<structured_topk>(rows, "topk", "", "values");
  AddStructured<structured_tril>(rows, "tril");
  AddStructured<structured_triu>(rows, "triu");
}

}  // namespace flagos::client
