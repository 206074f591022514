// SPDX-License-Identifier: Apache-2.0
// Reading by index, and reductions that are no structured kernels.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>

#include <algorithm>

#include "client/forward/predict/rules.h"
#include "client/forward/predict/unbox.h"

namespace flagos::client {
namespace {

bool IsIndex(const at::Tensor& tensor) {
  return tensor.scalar_type() == c10::ScalarType::Long || tensor.scalar_type() == c10::ScalarType::Int;
}

// self[indices]. Masks say only when they are counted how much they select.
bool Index(Arguments arguments, Outcome& outcome) {
  const at::Tensor& self = TensorAt(arguments, 0);
  const auto items = arguments[1].toListRef();
  if (!self.is_contiguous() || static_cast<int64_t>(items.size()) > self.dim()) return false;
  c10::DimVector selected;
  int64_t first = -1;
  int64_t last = -1;
  int64_t count = 0;
  for (int64_t dim = 0; dim < static_cast<int64_t>(items.size()); ++dim) {
    if (items[static_cast<size_t>(dim)].isNone()) continue;
    const at::Tensor& index = items[static_cast<size_t>(dim)].toTensor();
    if (!index.defined()) continue;
    if (!IsIndex(index) || !index.is_contiguous()) return false;
    selected = at::infer_size_dimvector(selected, index.sizes());
    if (first < 0) first = dim;
    last = dim;
    ++count;
  }
  if (count == 0) return false;
  const bool adjacent = last - first + 1 == count;
  // Others than the leading dimensions come out in an order of strides that the kernel chooses.
  if (!adjacent || first != 0) return false;
  c10::DimVector sizes(selected);
  sizes.append(self.sizes().begin() + last + 1, self.sizes().end());
  outcome.outputs.push_back(NewOutput(sizes, self.scalar_type()));
  return true;
}

bool IndexSelect(Arguments arguments, Outcome& outcome) {
  const at::Tensor& self = TensorAt(arguments, 0);
  const at::Tensor& index = TensorAt(arguments, 2);
  if (!IsIndex(index) || index.dim() > 1 || self.dim() == 0) return false;
  c10::DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(at::maybe_wrap_dim(arguments[1].toInt(), self.dim()))] = index.numel();
  outcome.outputs.push_back(NewOutput(sizes, self.scalar_type()));
  return true;
}

bool EmbeddingDenseBackward(Arguments arguments, Outcome& outcome) {
  const at::Tensor& gradient = TensorAt(arguments, 0);
  if (gradient.dim() == 0 || !IsIndex(TensorAt(arguments, 1))) return false;
  outcome.outputs.push_back(NewOutput({arguments[2].toInt(), gradient.size(-1)}, gradient.scalar_type()));
  return true;
}

// var, std and their likes over dimensions (all of them for None): sizes as any reduction, `outputs` of them.
template <size_t Outputs>
bool Reduction(Arguments arguments, Outcome& outcome) {
  const at::Tensor& self = TensorAt(arguments, 0);
  if (!self.is_floating_point()) return false;
  const c10::DimVector dims = arguments[1].isNone() ? c10::DimVector() : IntsOf(arguments[1]);
  const bool keep = arguments[3].toBool();
  const auto mask = at::dim_list_to_bitset(dims.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims),
                                           static_cast<size_t>(self.dim()));
  c10::DimVector sizes;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    if (!mask[static_cast<size_t>(dim)]) {
      sizes.push_back(self.size(dim));
    } else if (keep) {
      sizes.push_back(1);
    }
  }
  for (size_t i = 0; i < Outputs; ++i) outcome.outputs.push_back(NewOutput(sizes, self.scalar_type()));
  return self.is_contiguous();
}

bool Dot(Arguments arguments, Outcome& outcome) {
  const at::Tensor& self = TensorAt(arguments, 0);
  const at::Tensor& other = TensorAt(arguments, 1);
  if (self.dim() != 1 || self.sizes() != other.sizes() || self.scalar_type() != other.scalar_type()) return false;
  outcome.outputs.push_back(NewOutput({}, self.scalar_type()));
  return true;
}

// beta * self + batch1 @ batch2.
bool BatchedAddProduct(Arguments arguments, Outcome& outcome) {
  const at::Tensor& self = TensorAt(arguments, 0);
  const at::Tensor& left = TensorAt(arguments, 1);
  const at::Tensor& right = TensorAt(arguments, 2);
  if (left.dim() != 3 || right.dim() != 3 || left.size(0) != right.size(0) || left.size(2) != right.size(1))
    return false;
  if (left.scalar_type() != right.scalar_type() || left.scalar_type() != self.scalar_type()) return false;
  const c10::DimVector sizes{left.size(0), left.size(1), right.size(2)};
  if (!at::is_expandable_to(self.sizes(), sizes)) return false;
  outcome.outputs.push_back(NewOutput(sizes, self.scalar_type()));
  return true;
}

}  // namespace

void AddIndexingRules(PredictorRows& rows) {
  rows.insert(rows.end(), {
                              {"aten::index.Tensor", &Index},
                              {"aten::index_select", &IndexSelect},
                              {"aten::embedding_dense_backward", &EmbeddingDenseBackward},
                              {"aten::var.correction", &Reduction<1>},
                              {"aten::std.correction", &Reduction<1>},
                              {"aten::var_mean.correction", &Reduction<2>},
                              {"aten::std_mean.correction", &Reduction<2>},
                              {"aten::dot", &Dot},
                              {"aten::baddbmm", &BatchedAddProduct},
                          });
}

}  // namespace flagos::client
