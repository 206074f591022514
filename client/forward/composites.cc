// SPDX-License-Identifier: Apache-2.0
// Operators that PyTorch composes of others, and whose composition asks for a CPU tensor where the device's will do
// too.
#include <ATen/ops/tensor_split_native.h>

#include "client/forward/local.h"

namespace flagos::client {
namespace {

// The places to split at are numbers that the views need now: read from the device where they lie there.
std::vector<at::Tensor> TensorSplit(const at::Tensor& self, const at::Tensor& indices_or_sections, int64_t dim) {
  return at::native::tensor_split(self, indices_or_sections.cpu(), dim);
}

}  // namespace

void RegisterComposites(torch::Library& library) {
  library.impl("tensor_split.tensor_indices_or_sections", TORCH_FN(TensorSplit));
}

}  // namespace flagos::client
