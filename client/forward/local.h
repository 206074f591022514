// SPDX-License-Identifier: Apache-2.0
// Operators that the client computes by itself: factories, views, metadata, copies.
#pragma once

#include <torch/library.h>

namespace flagos::client {

// Whether the device has a kernel for the operator `name` ("aten::add", of the overload without a name): its
// executor's.
inline bool Forwarded(const char* name) {
  const auto handle = c10::Dispatcher::singleton().findSchema({name, ""});
  return handle && handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
}

// Each adds its kernels to a library of aten on PrivateUse1.
void RegisterFactories(torch::Library& library);
void RegisterViews(torch::Library& library);
void RegisterStorageOperators(torch::Library& library);
void RegisterCopies(torch::Library& library);
void RegisterConvolution(torch::Library& library);
void RegisterAttention(torch::Library& library);
void RegisterRecurrentCells(torch::Library& library);
// Both also for a library on AutogradPrivateUse1: what they are composed of is what is differentiated.
void RegisterBatchNorm(torch::Library& library);
void RegisterComposites(torch::Library& library);

// The same for sparse tensors, whose keys these libraries have.
void RegisterSparseLocal(torch::Library& coo, torch::Library& compressed);

inline void RegisterLocal(torch::Library& library) {
  RegisterFactories(library);
  RegisterViews(library);
  RegisterStorageOperators(library);
  RegisterCopies(library);
  RegisterConvolution(library);
  RegisterAttention(library);
  RegisterRecurrentCells(library);
  RegisterBatchNorm(library);
  RegisterComposites(library);
}

}  // namespace flagos::client
