// SPDX-License-Identifier: Apache-2.0
// What the rules of our own share.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "client/forward/predict/geometry.h"
#include "client/forward/predict/tables.h"

namespace flagos::client {

// The tensor of an argument; an undefined one for None.
inline const at::Tensor& TensorAt(Arguments arguments, size_t index) {
  static const at::Tensor undefined;
  return arguments[index].isTensor() ? arguments[index].toTensor() : undefined;
}

// A result that TensorIterator computes element by element from the arguments of those numbers, which it broadcasts.
// As PyTorch promotes them where `dtype` is Undefined.
Output ElementwiseOutput(Arguments arguments, std::initializer_list<size_t> inputs, c10::ScalarType dtype);

inline Output UndefinedOutput() { return {}; }

}  // namespace flagos::client
