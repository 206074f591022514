// SPDX-License-Identifier: Apache-2.0
// PyTorch's enums as the wire's numbers and back.
#pragma once

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>

#include "proto/wire/types.h"

namespace flagos::client {

inline constexpr auto kScalarTypeCount = static_cast<size_t>(c10::ScalarType::NumOptions);

// By c10's number; kUndefined where the wire has none: quantized, sub-byte and bit types.
inline constexpr std::array<DType, kScalarTypeCount + 1> kWireTypes = [] {
  std::array<DType, kScalarTypeCount + 1> types{};
  const auto set = [&](c10::ScalarType from, DType to) { types[static_cast<size_t>(from)] = to; };
  using c10::ScalarType;
  set(ScalarType::Byte, DType::kUint8);
  set(ScalarType::Char, DType::kInt8);
  set(ScalarType::Short, DType::kInt16);
  set(ScalarType::Int, DType::kInt32);
  set(ScalarType::Long, DType::kInt64);
  set(ScalarType::Half, DType::kFloat16);
  set(ScalarType::Float, DType::kFloat32);
  set(ScalarType::Double, DType::kFloat64);
  set(ScalarType::ComplexHalf, DType::kComplex32);
  set(ScalarType::ComplexFloat, DType::kComplex64);
  set(ScalarType::ComplexDouble, DType::kComplex128);
  set(ScalarType::Bool, DType::kBool);
  set(ScalarType::BFloat16, DType::kBFloat16);
  set(ScalarType::Float8_e5m2, DType::kFloat8E5M2);
  set(ScalarType::Float8_e4m3fn, DType::kFloat8E4M3FN);
  set(ScalarType::Float8_e5m2fnuz, DType::kFloat8E5M2FNUZ);
  set(ScalarType::Float8_e4m3fnuz, DType::kFloat8E4M3FNUZ);
  set(ScalarType::Float8_e8m0fnu, DType::kFloat8E8M0FNU);
  set(ScalarType::UInt16, DType::kUint16);
  set(ScalarType::UInt32, DType::kUint32);
  set(ScalarType::UInt64, DType::kUint64);
  return types;
}();

// By the wire's number; Undefined for kUndefined.
inline constexpr std::array<c10::ScalarType, kDTypeCount> kScalarTypes = [] {
  std::array<c10::ScalarType, kDTypeCount> types{};
  types.fill(c10::ScalarType::Undefined);
  for (size_t i = 0; i < kScalarTypeCount; ++i) {
    if (kWireTypes[i] != DType::kUndefined) types[static_cast<size_t>(kWireTypes[i])] = static_cast<c10::ScalarType>(i);
  }
  return types;
}();

constexpr DType ToWire(c10::ScalarType type) { return kWireTypes[static_cast<size_t>(type)]; }
// REQUIRES a decoded, hence known, number.
constexpr c10::ScalarType FromWire(DType type) { return kScalarTypes[static_cast<size_t>(type)]; }

// Layouts and memory formats that the wire does not know become one of its numbers' limits, which encoders refuse.
constexpr Layout ToWire(c10::Layout layout) {
  switch (layout) {
    case c10::kStrided: return Layout::kStrided;
    case c10::kSparse: return Layout::kSparse;
    case c10::kSparseCsr: return Layout::kSparseCsr;
    case c10::kSparseCsc: return Layout::kSparseCsc;
    case c10::kSparseBsr: return Layout::kSparseBsr;
    case c10::kSparseBsc: return Layout::kSparseBsc;
    case c10::kJagged: return Layout::kJagged;
    default: return static_cast<Layout>(kLayoutCount);
  }
}
constexpr MemoryFormat ToWire(c10::MemoryFormat format) {
  switch (format) {
    case c10::MemoryFormat::Contiguous: return MemoryFormat::kContiguous;
    case c10::MemoryFormat::Preserve: return MemoryFormat::kPreserve;
    case c10::MemoryFormat::ChannelsLast: return MemoryFormat::kChannelsLast;
    case c10::MemoryFormat::ChannelsLast3d: return MemoryFormat::kChannelsLast3d;
    default: return static_cast<MemoryFormat>(kMemoryFormatCount);
  }
}

}  // namespace flagos::client
