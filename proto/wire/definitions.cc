// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/definitions.h"

#include <algorithm>

#include "proto/wire/kernels.h"

namespace flagos {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr uint32_t kMaxListedOperators = 1u << 14;

// Names are shown in logs and terminals and are zero-terminated in shared memory: printable ASCII only.
bool IsName(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

void EncodeOperatorDefinition(ByteWriter& out, const OperatorDefinition& definition) {
  out.put_string(definition.name);
  out.put_string(definition.overload);
  out.put(definition.arguments);
  out.put(static_cast<uint16_t>(definition.returns.size()));
  for (const ReturnKind kind : definition.returns) out.put(static_cast<uint8_t>(kind));
  if (!definition.library.empty()) out.put_string(definition.library);
}

Result<OperatorDefinition> DecodeOperatorDefinition(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  OperatorDefinition definition;
  definition.name = in.get_string(kMaxNameBytes);
  definition.overload = in.get_string(kMaxNameBytes);
  definition.arguments = in.get<uint16_t>();
  const auto returns = in.get<uint16_t>();
  if (returns > in.remaining()) in.fail();
  for (uint16_t i = 0; in.ok() && i < returns; ++i) {
    const auto kind = in.get<uint8_t>();
    if (kind >= kReturnKindCount) in.fail();
    definition.returns.push_back(static_cast<ReturnKind>(kind));
  }
  // Padding is zero, and so would the length of a library's name be.
  ByteReader ahead = in;
  if (ahead.get<uint32_t>() != 0) {
    definition.library = in.get_string(kMaxLibraryName);
    if (!IsLibraryName(definition.library)) in.fail();
  }
  if (!in.ok() || definition.name.empty() || !IsName(definition.name) || !IsName(definition.overload) ||
      in.remaining() > 7) {
    return MakeError(ErrorCode::kMalformed,
                     "the definition of an operator does not decode; use a client and a flagosd "
                     "of one version");
  }
  return definition;
}

void EncodeOperatorList(ByteWriter& out, std::span<const std::string> names) {
  out.put(static_cast<uint32_t>(names.size()));
  for (const std::string& name : names) out.put_string(name);
}

Result<std::vector<std::string>> DecodeOperatorList(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto count = in.get<uint32_t>();
  if (count > kMaxListedOperators) in.fail();
  std::vector<std::string> names;
  for (uint32_t i = 0; in.ok() && i < count; ++i) names.push_back(in.get_string(kMaxNameBytes * 2));
  if (!in.ok()) {
    return MakeError(ErrorCode::kMalformed,
                     "the executor's list of operators does not decode; use a client and a "
                     "flagosd of one version");
  }
  return names;
}

}  // namespace flagos
