// SPDX-License-Identifier: Apache-2.0
// The definition of an operator, and the list of operators that an executor offers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/bytes.h"
#include "proto/wire/error.h"

namespace flagos {

enum class ReturnKind : uint8_t { kTensor = 0, kTensorList = 1, kValue = 2, kMutatedArgument = 3 };
inline constexpr uint8_t kReturnKindCount = 4;

// How an operator is called in lists and messages: "aten::add.Tensor"; "aten::relu" where the overload is empty.
inline std::string FullOperatorName(const std::string& name, const std::string& overload) {
  return overload.empty() ? name : name + "." + overload;
}

// Payload of kDefineOperator: string name ("aten::add"), string overload ("Tensor"), u16 arguments, u16 returns, then a
// ReturnKind each, and with kFeatureKernels, where the client chooses, string library. Operators are matched by name
// and overload; counts that differ from the executor's schema are an error.
struct OperatorDefinition {
  std::string name;
  std::string overload;
  uint16_t arguments = 0;
  std::vector<ReturnKind> returns;
  // That runs the operator's calls: a kernel library, or kNativeKernels. Empty: as flagosd's configuration says.
  std::string library = {};
};

void EncodeOperatorDefinition(ByteWriter& out, const OperatorDefinition& definition);
Result<OperatorDefinition> DecodeOperatorDefinition(std::span<const std::byte> bytes);

// Reply to kListOperators: u32 count, then strings "aten::add.Tensor" ("aten::relu" where the overload is empty).
void EncodeOperatorList(ByteWriter& out, std::span<const std::string> names);
Result<std::vector<std::string>> DecodeOperatorList(std::span<const std::byte> bytes);

}  // namespace flagos
