// SPDX-License-Identifier: Apache-2.0
#include "vendors/null/operators.h"

#include <algorithm>
#include <array>

namespace flagos::null {
namespace {

constexpr std::array<std::string_view, 78> kNames = {
    "aten::_foreach_add_.List",
    "aten::_foreach_add_.Scalar",
    "aten::_foreach_addcdiv_.ScalarList",
    "aten::_foreach_addcmul_.Scalar",
    "aten::_foreach_div_.ScalarList",
    "aten::_foreach_lerp_.Scalar",
    "aten::_foreach_mul_.Scalar",
    "aten::_foreach_sqrt",
    "aten::_foreach_zero_",
    "aten::_fused_adamw_",
    "aten::_local_scalar_dense",
    "aten::_log_softmax",
    "aten::_log_softmax_backward_data",
    "aten::_softmax",
    "aten::_softmax_backward_data",
    "aten::abs",
    "aten::add.Tensor",
    "aten::add.out",
    "aten::add_.Tensor",
    "aten::addcdiv_",
    "aten::addcmul_",
    "aten::addmm",
    "aten::arange.start_out",
    "aten::argmax",
    "aten::baddbmm",
    "aten::bitwise_and.Tensor",
    "aten::bmm",
    "aten::cat",
    "aten::clamp",
    "aten::copy_",
    "aten::cos",
    "aten::div.Tensor",
    "aten::div_.Tensor",
    "aten::embedding",
    "aten::embedding_dense_backward",
    "aten::eq.Scalar",
    "aten::eq.Tensor",
    "aten::equal",
    "aten::exp",
    "aten::fill_.Scalar",
    "aten::gather",
    "aten::ge.Scalar",
    "aten::gelu",
    "aten::gelu_backward",
    "aten::gt.Scalar",
    "aten::index_select",
    "aten::log",
    "aten::lt.Scalar",
    "aten::max",
    "aten::mean",
    "aten::mean.dim",
    "aten::mm",
    "aten::mul.Scalar",
    "aten::mul.Tensor",
    "aten::mul_.Tensor",
    "aten::native_layer_norm",
    "aten::native_layer_norm_backward",
    "aten::ne.Scalar",
    "aten::neg",
    "aten::nll_loss_backward",
    "aten::nll_loss_forward",
    "aten::normal_",
    "aten::pow.Tensor_Scalar",
    "aten::relu",
    "aten::relu_",
    "aten::rsqrt",
    "aten::sigmoid",
    "aten::silu",
    "aten::sin",
    "aten::sqrt",
    "aten::sub.Tensor",
    "aten::sub_.Tensor",
    "aten::sum",
    "aten::sum.dim_IntList",
    "aten::tanh",
    "aten::threshold_backward",
    "aten::uniform_",
    "aten::zero_",
};
static_assert(std::is_sorted(kNames.begin(), kNames.end()), "searched by halves");

}  // namespace

std::vector<std::string> OperatorNames() { return {kNames.begin(), kNames.end()}; }

bool HasOperator(std::string_view name) { return std::binary_search(kNames.begin(), kNames.end(), name); }

}  // namespace flagos::null
