// SPDX-License-Identifier: Apache-2.0
// The client's settings of precision and algorithms, for cuBLAS and cuDNN.
#pragma once

#include "proto/wire/records.h"

namespace flagos::cuda {

void ApplyPrecision(const ContextState& state);

}  // namespace flagos::cuda
