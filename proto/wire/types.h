// SPDX-License-Identifier: Apache-2.0
// Numbers of our own for what PyTorch counts differently from version to version. Never renumber; append only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flagos {

enum class DType : uint8_t {
  kUndefined = 0,
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kComplex32 = 9,
  kComplex64 = 10,
  kComplex128 = 11,
  kBool = 12,
  kBFloat16 = 13,
  kFloat8E5M2 = 14,
  kFloat8E4M3FN = 15,
  kFloat8E5M2FNUZ = 16,
  kFloat8E4M3FNUZ = 17,
  kFloat8E8M0FNU = 18,
  kUint16 = 19,
  kUint32 = 20,
  kUint64 = 21,
};
inline constexpr uint8_t kDTypeCount = 22;

// Bytes of one element; 0 for kUndefined and for numbers out of range.
constexpr size_t ElementSize(DType dtype) {
  constexpr uint8_t kSizes[kDTypeCount] = {0, 1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 2, 1, 1, 1, 1, 1, 2, 4, 8};
  const auto index = static_cast<uint8_t>(dtype);
  return index < kDTypeCount ? kSizes[index] : 0;
}

enum class Layout : uint8_t {
  kStrided = 0,
  kSparse = 1,
  kSparseCsr = 2,
  kSparseCsc = 3,
  kSparseBsr = 4,
  kSparseBsc = 5,
  kJagged = 6
};
inline constexpr uint8_t kLayoutCount = 7;

enum class MemoryFormat : uint8_t { kContiguous = 0, kPreserve = 1, kChannelsLast = 2, kChannelsLast3d = 3 };
inline constexpr uint8_t kMemoryFormatCount = 4;

// A device as an argument of a call.
enum class DeviceKind : uint8_t { kHost = 0, kFlagos = 1, kMeta = 2 };

// Limits that both sides enforce. A tensor beyond them is refused in the client with a clear error.
inline constexpr size_t kMaxDimensions = 64;
inline constexpr int64_t kMaxElements = int64_t{1} << 62;
inline constexpr uint32_t kMaxHandle = (1u << 24) - 1;  // live storages of a session; handle 0 is "no bytes"
inline constexpr uint32_t kMaxOperators = 1u << 14;
inline constexpr uint32_t kMaxSignatures = 1u << 16;  // live at a time; the client evicts (kDropSignature)
inline constexpr uint32_t kMaxContexts = 1u << 10;
inline constexpr uint32_t kMaxEvents = 1u << 20;
inline constexpr uint32_t kMaxGenerators = 1u << 16;
inline constexpr uint32_t kMaxListLength = 1u << 16;  // entries of one list argument
inline constexpr uint32_t kMaxDevices = 64;
inline constexpr uint32_t kMaxStreams = 1024;  // slots; 0..63 are the default streams of devices 0..63

}  // namespace flagos
