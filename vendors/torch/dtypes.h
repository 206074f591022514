// SPDX-License-Identifier: Apache-2.0
// The wire's own numbers of dtypes, layouts and memory formats, and PyTorch's, both ways.
#pragma once

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include "proto/wire/types.h"

namespace flagos::torch_host {

// Undefined for kUndefined. REQUIRES a valid number.
c10::ScalarType ToScalarType(DType dtype);
// kUndefined where the wire has no number for it: quantized and sub-byte types.
DType ToDType(c10::ScalarType type);

// REQUIRE valid numbers.
c10::Layout ToLayout(Layout layout);
c10::MemoryFormat ToMemoryFormat(MemoryFormat format);

}  // namespace flagos::torch_host
