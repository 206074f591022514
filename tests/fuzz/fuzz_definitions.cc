// SPDX-License-Identifier: Apache-2.0
// Definitions of operators, and lists of them and of kernel libraries.
#include <algorithm>

#include "proto/wire/definitions.h"
#include "proto/wire/kernels.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  flagos::ByteWriter out;
  if (const auto definition = flagos::DecodeOperatorDefinition(bytes); definition.ok()) {
    // A name goes into a table of zero-terminated ones, and to terminals.
    const auto& name = definition.value().name;
    FUZZ_CHECK(!name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; }));
    flagos::EncodeOperatorDefinition(out, definition.value());
    const auto again = flagos::DecodeOperatorDefinition(out.bytes());
    FUZZ_CHECK(again.ok() && again.value().library == definition.value().library);
    // It becomes part of messages, and is looked for among names of files.
    FUZZ_CHECK(definition.value().library.empty() || flagos::IsLibraryName(definition.value().library));
    out.clear();
  }
  if (const auto names = flagos::DecodeOperatorList(bytes); names.ok()) {
    flagos::EncodeOperatorList(out, names.value());
    const auto again = flagos::DecodeOperatorList(out.bytes());
    FUZZ_CHECK(again.ok() && again.value() == names.value());
    out.clear();
  }
  if (const auto libraries = flagos::DecodeKernelLibraries(bytes); libraries.ok()) {
    flagos::EncodeKernelLibraries(out, libraries.value());
    const auto again = flagos::DecodeKernelLibraries(out.bytes());
    FUZZ_CHECK(again.ok() && again.value() == libraries.value());
    out.clear();
  }
  if (const auto figures = flagos::DecodeKernelFigures(bytes); figures.ok()) {
    flagos::EncodeKernelFigures(out, figures.value());
    const auto again = flagos::DecodeKernelFigures(out.bytes());
    FUZZ_CHECK(again.ok() && again.value() == figures.value());
  }
  return 0;
}
