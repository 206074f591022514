// SPDX-License-Identifier: Apache-2.0
// CUDA's status codes as errors that say what to do.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "proto/wire/error.h"

namespace flagos::cuda {

// Ok for cudaSuccess; kOutOfMemory, else kDevice. `what` is what was being done.
Error ToError(cudaError_t status, const std::string& what);

// Why no GPU can be used.
std::string NoDevices(cudaError_t status);

// Throws torch_host::Refusal with ToError() where the status is an error.
void Check(cudaError_t status, const char* what);

}  // namespace flagos::cuda
