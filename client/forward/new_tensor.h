// SPDX-License-Identifier: Apache-2.0
// Making tensors on the device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <optional>

namespace flagos::client {

// A storage of this memory of the device, resizable. It is on the data's device also where that has no bytes, as
// PyTorch's c10::make_storage_impl() does not have it: that takes such data for none, and asks the allocator, which
// gives it some of the current device.
c10::Storage StorageOf(c10::DataPtr data, uint64_t bytes);

// A new tensor with unspecified elements. REQUIRES sizes and strides that do not overflow and a device with its index.
at::Tensor NewTensor(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, c10::Device device);

// A tensor over a storage that exists.
at::Tensor TensorOver(const c10::Storage& storage, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset,
                      c10::ScalarType dtype);

}  // namespace flagos::client
