// SPDX-License-Identifier: Apache-2.0
// Definitions of operators, and lists of them.
#include <algorithm>

#include "proto/wire/definitions.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  flagos::ByteWriter out;
  if (const auto definition = flagos::DecodeOperatorDefinition(bytes); definition.ok()) {
    // A name goes into a table of zero-terminated ones, and to terminals.
    const auto& name = definition.value().name;
    FUZZ_CHECK(!name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; }));
    flagos::EncodeOperatorDefinition(out, definition.value());
    FUZZ_CHECK(flagos::DecodeOperatorDefinition(out.bytes()).ok());
    out.clear();
  }
  if (const auto names = flagos::DecodeOperatorList(bytes); names.ok()) {
    flagos::EncodeOperatorList(out, names.value());
    const auto again = flagos::DecodeOperatorList(out.bytes());
    FUZZ_CHECK(again.ok() && again.value() == names.value());
  }
  return 0;
}
