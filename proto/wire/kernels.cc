// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/kernels.h"

#include <algorithm>

#include "proto/wire/types.h"

namespace flagos {
namespace {

constexpr uint32_t kMaxLibraries = 1024;
constexpr size_t kMaxTextBytes = 4096;

Error DoesNotDecode(const char* what) {
  return MakeError(ErrorCode::kMalformed, std::string("the executor's ") + what +
                                              " does not decode; use a client and a flagosd of one version");
}

}  // namespace

bool IsLibraryName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxLibraryName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

void EncodeKernelLibraries(ByteWriter& out, std::span<const KernelLibraryInfo> libraries) {
  out.put(static_cast<uint32_t>(libraries.size()));
  for (const KernelLibraryInfo& library : libraries) {
    out.put_string(library.name);
    out.put_string(CutText(library.description, kMaxTextBytes));
    out.put_string(CutText(library.error, kMaxTextBytes));
    out.put(static_cast<uint32_t>(library.operators.size()));
    for (const std::string& op : library.operators) out.put_string(op);
  }
}

Result<std::vector<KernelLibraryInfo>> DecodeKernelLibraries(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  std::vector<KernelLibraryInfo> libraries;
  const auto count = in.get<uint32_t>();
  if (count > kMaxLibraries) in.fail();
  for (uint32_t i = 0; in.ok() && i < count; ++i) {
    KernelLibraryInfo& library = libraries.emplace_back();
    library.name = in.get_string(kMaxLibraryName);
    library.description = in.get_string(kMaxTextBytes);
    library.error = in.get_string(kMaxTextBytes);
    const auto operators = in.get<uint32_t>();
    if (!IsLibraryName(library.name) || operators > kMaxOperators) in.fail();
    for (uint32_t k = 0; in.ok() && k < operators; ++k) library.operators.push_back(in.get_string(kMaxTextBytes));
  }
  if (!in.ok()) return DoesNotDecode("list of kernel libraries");
  return libraries;
}

void EncodeKernelFigures(ByteWriter& out, std::span<const KernelFigures> figures) {
  out.put(static_cast<uint32_t>(figures.size()));
  for (const KernelFigures& figure : figures) {
    out.put(figure.op);
    out.put_string(figure.library);
    out.put(figure.calls);
  }
}

Result<std::vector<KernelFigures>> DecodeKernelFigures(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  std::vector<KernelFigures> figures;
  const auto count = in.get<uint32_t>();
  if (count > kMaxOperators) in.fail();
  for (uint32_t i = 0; in.ok() && i < count; ++i) {
    KernelFigures& figure = figures.emplace_back();
    figure.op = in.get<uint32_t>();
    figure.library = in.get_string(kMaxLibraryName);
    figure.calls = in.get<uint64_t>();
    if (!IsLibraryName(figure.library)) in.fail();
  }
  if (!in.ok()) return DoesNotDecode("figures of kernel libraries");
  return figures;
}

}  // namespace flagos
