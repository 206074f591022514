// SPDX-License-Identifier: Apache-2.0
// Copies between the CPU and the device.
#pragma once

#include <ATen/core/Tensor.h>

namespace flagos::client {

// Both REQUIRE a source that can be expanded to the destination's sizes, and elements. Strided and converting copies
// are done in the executor, on as few bytes as can be staged.

// Returns once the source may be overwritten; from pinned memory with `non_blocking` at once.
void CopyToDevice(const at::Tensor& to, const at::Tensor& from, bool non_blocking);

// Returns once the bytes are there; into pinned memory with `non_blocking` at once.
void CopyToHost(const at::Tensor& to, const at::Tensor& from, bool non_blocking);

}  // namespace flagos::client
