// SPDX-License-Identifier: Apache-2.0
// Kernel libraries: what an executor has besides its vendor's own kernels, and which of them ran what.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/bytes.h"
#include "proto/wire/error.h"

namespace flagos {

// Stands in a library's place for the vendor's own kernels.
inline constexpr std::string_view kNativeKernels = "native";

inline constexpr size_t kMaxLibraryName = 64;
// Letters, digits, "_" and "-", at most kMaxLibraryName of them: it becomes part of a file's name and of messages.
bool IsLibraryName(std::string_view name);

// Reply to kListKernels: u32 count, then for each string name, string description, string error (why it cannot be used;
// empty if it can), u32 count, that many strings "aten::sum.dim_IntList".
struct KernelLibraryInfo {
  std::string name;
  std::string description;
  std::string error;
  std::vector<std::string> operators;

  bool operator==(const KernelLibraryInfo&) const = default;
};
void EncodeKernelLibraries(ByteWriter& out, std::span<const KernelLibraryInfo> libraries);
Result<std::vector<KernelLibraryInfo>> DecodeKernelLibraries(std::span<const std::byte> bytes);

// Reply to kKernelFigures: u32 count, then for each u32 operator, string library, u64 calls. Of operators for which a
// library was chosen, by the client or by flagosd's configuration; their other calls ran on the vendor's own kernels.
struct KernelFigures {
  uint32_t op = 0;
  std::string library;
  uint64_t calls = 0;  // that the library's kernel ran so far

  bool operator==(const KernelFigures&) const = default;
};
void EncodeKernelFigures(ByteWriter& out, std::span<const KernelFigures> figures);
Result<std::vector<KernelFigures>> DecodeKernelFigures(std::span<const std::byte> bytes);

}  // namespace flagos
