// SPDX-License-Identifier: Apache-2.0
// Sparse tensors as the client has them: PyTorch's own structures over dense tensors of the device, their components.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/SmallVector.h>

#include "client/forward/scratch.h"
#include "proto/wire/signature.h"

namespace flagos::client {

// At most: compressed indices, plain indices, values.
inline constexpr size_t kMostComponents = 3;
using Components = c10::SmallVector<at::Tensor, kMostComponents>;

inline bool IsSparse(const c10::TensorImpl& impl) { return impl.is_sparse() || impl.is_sparse_compressed(); }

// All REQUIRE IsSparse().
Components ComponentsOf(const c10::TensorImpl& impl);
bool IsCoalesced(const c10::TensorImpl& impl);  // false for compressed ones
// Writes tag and shape; null, or why it cannot cross: PyTorch makes such tensors without looking at what they are made
// of.
const char* PutSparseShape(Scratch<std::byte>& out, const c10::TensorImpl& impl);

// Throw where the components do not make a tensor of that shape; what indices say is not looked at.
at::Tensor MakeSparse(const SparseShape& shape, const Components& components);
// REQUIRES a tensor of the shape's layout and dtype.
void ReplaceComponents(c10::TensorImpl& impl, const SparseShape& shape, const Components& components);

}  // namespace flagos::client
