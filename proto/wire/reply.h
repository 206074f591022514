// SPDX-License-Identifier: Apache-2.0
// The answer to a SYNC record, in a reply slot of the executor's region (proto/shm/layout.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/bytes.h"
#include "proto/wire/error.h"

namespace flagos {

enum class WarningKind : uint8_t { kUser = 0, kDeprecation = 1, kRuntime = 2 };

// A warning raised in the executor, to be raised again in the client.
struct Warning {
  WarningKind kind = WarningKind::kUser;
  std::string text;
};

// Wire form: u16 ErrorCode, u8 1 where the error is an earlier asynchronous call's (the record itself was then not
// carried out) else 0, u8 warnings; each warning: u8 kind, string; then, for an error, the string of its message, else
// the body that the record's kind says (kCall: an Outcome).
struct Reply {
  Error error;
  bool deferred = false;
  std::vector<Warning> warnings;
  std::vector<std::byte> body;
};

// Appends everything before the body; the body may be appended right behind it.
void EncodeReplyHead(ByteWriter& out, const Error& error, bool deferred, std::span<const Warning> warnings);
// Refuses what does not decode with kMalformed.
Result<Reply> DecodeReply(std::span<const std::byte> bytes);

}  // namespace flagos
