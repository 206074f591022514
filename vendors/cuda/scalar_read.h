// SPDX-License-Identifier: Apache-2.0
// Reading one element to the host, which is what Tensor.item() waits for.
#pragma once

namespace flagos::cuda {

// Puts a faster kernel in the place of aten::_local_scalar_dense for CUDA, in this process. PyTorch's own waits for the
// stream; this one watches the value arrive in pinned memory, which it does some microseconds earlier. Once, before the
// first call. May throw.
void ReplaceScalarRead();

}  // namespace flagos::cuda
