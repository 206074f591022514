// SPDX-License-Identifier: Apache-2.0
// What a first call on a device would otherwise wait for.
#pragma once

#include <cstdint>

namespace flagos::cuda {

// Opens the device's context and the handles of cuBLAS and cuDNN, and loads common kernels. Throws c10::Error where the
// device cannot be used. Leaves nothing allocated.
void WarmUp(uint8_t device);

}  // namespace flagos::cuda
