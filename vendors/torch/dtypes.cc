// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/dtypes.h"

#include <array>

namespace flagos::torch_host {
namespace {

using c10::ScalarType;

// In the order of DType.
constexpr std::array<ScalarType, kDTypeCount> kScalarTypes = {
    ScalarType::Undefined,
    ScalarType::Byte,
    ScalarType::Char,
    ScalarType::Short,
    ScalarType::Int,
    ScalarType::Long,
    ScalarType::Half,
    ScalarType::Float,
    ScalarType::Double,
    ScalarType::ComplexHalf,
    ScalarType::ComplexFloat,
    ScalarType::ComplexDouble,
    ScalarType::Bool,
    ScalarType::BFloat16,
    ScalarType::Float8_e5m2,
    ScalarType::Float8_e4m3fn,
    ScalarType::Float8_e5m2fnuz,
    ScalarType::Float8_e4m3fnuz,
    ScalarType::Float8_e8m0fnu,
    ScalarType::UInt16,
    ScalarType::UInt32,
    ScalarType::UInt64,
};

constexpr size_t kScalarTypeCount = static_cast<size_t>(ScalarType::NumOptions);

constexpr std::array<DType, kScalarTypeCount> kDTypes = [] {
  std::array<DType, kScalarTypeCount> inverse{};
  for (uint8_t i = 1; i < kDTypeCount; ++i) inverse[static_cast<size_t>(kScalarTypes[i])] = static_cast<DType>(i);
  return inverse;
}();

constexpr std::array<c10::Layout, kLayoutCount> kLayouts = {
    c10::Layout::Strided,   c10::Layout::Sparse,    c10::Layout::SparseCsr, c10::Layout::SparseCsc,
    c10::Layout::SparseBsr, c10::Layout::SparseBsc, c10::Layout::Jagged};

constexpr std::array<c10::MemoryFormat, kMemoryFormatCount> kMemoryFormats = {
    c10::MemoryFormat::Contiguous, c10::MemoryFormat::Preserve, c10::MemoryFormat::ChannelsLast,
    c10::MemoryFormat::ChannelsLast3d};

}  // namespace

c10::ScalarType ToScalarType(DType dtype) { return kScalarTypes[static_cast<uint8_t>(dtype)]; }

DType ToDType(c10::ScalarType type) {
  const auto index = static_cast<size_t>(type);
  return index < kScalarTypeCount ? kDTypes[index] : DType::kUndefined;
}

c10::Layout ToLayout(Layout layout) { return kLayouts[static_cast<uint8_t>(layout)]; }

c10::MemoryFormat ToMemoryFormat(MemoryFormat format) { return kMemoryFormats[static_cast<uint8_t>(format)]; }

}  // namespace flagos::torch_host
