// SPDX-License-Identifier: Apache-2.0
// Sizes of small blocks: steps of 64 bytes up to 1 KiB, then eight sizes for every doubling, so at most an eighth is
// idle.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace flagos::cpu {

inline constexpr uint64_t kAlignment = 64;
inline constexpr uint64_t kLargestSmall = uint64_t{1} << 20;
inline constexpr size_t kLinearClasses = 16;
inline constexpr size_t kSizeClasses = kLinearClasses + 10 * 8;  // 1 KiB to 1 MiB are ten doublings

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

// REQUIRES 0 < bytes <= kLargestSmall.
constexpr size_t SizeClass(uint64_t bytes) {
  if (bytes <= 1024) return (bytes - 1) / kAlignment;
  const int doubling = std::bit_width(bytes - 1) - 1;  // 2^doubling < bytes <= 2^(doubling + 1)
  const uint64_t eighth = ((bytes - 1) >> (doubling - 3)) & 7;
  return kLinearClasses + static_cast<size_t>(doubling - 10) * 8 + eighth;
}

constexpr uint64_t ClassBytes(size_t size_class) {
  if (size_class < kLinearClasses) return (size_class + 1) * kAlignment;
  const size_t doubling = 10 + (size_class - kLinearClasses) / 8;
  return (uint64_t{1} << doubling) + (((size_class - kLinearClasses) % 8 + 1) << (doubling - 3));
}

static_assert(SizeClass(1) == 0 && SizeClass(64) == 0 && SizeClass(65) == 1 && SizeClass(1024) == 15);
static_assert(SizeClass(1025) == 16 && ClassBytes(16) == 1152 && SizeClass(1152) == 16 && SizeClass(1153) == 17);
static_assert(SizeClass(kLargestSmall) == kSizeClasses - 1 && ClassBytes(kSizeClasses - 1) == kLargestSmall);

}  // namespace flagos::cpu
