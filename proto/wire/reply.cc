// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/reply.h"

#include <algorithm>

namespace flagos {
namespace {

constexpr size_t kMaxWarnings = 32;      // further ones of one call are dropped
constexpr size_t kMaxTextBytes = 32768;  // longer texts are cut

}  // namespace

void EncodeReplyHead(ByteWriter& out, const Error& error, bool deferred, std::span<const Warning> warnings) {
  const size_t count = std::min(warnings.size(), kMaxWarnings);
  out.put(static_cast<uint16_t>(error.code));
  out.put(static_cast<uint8_t>(deferred));
  out.put(static_cast<uint8_t>(count));
  for (const Warning& warning : warnings.first(count)) {
    out.put(static_cast<uint8_t>(warning.kind));
    out.put_string(CutText(warning.text, kMaxTextBytes / kMaxWarnings));
  }
  if (!error.ok()) out.put_string(CutText(error.message, kMaxTextBytes));
}

Result<Reply> DecodeReply(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Reply reply;
  reply.error.code = ErrorCodeFromWire(in.get<uint16_t>());
  reply.deferred = in.get<uint8_t>() != 0;
  const auto warnings = in.get<uint8_t>();
  for (uint8_t i = 0; in.ok() && i < warnings; ++i) {
    Warning warning;
    const auto kind = in.get<uint8_t>();
    warning.kind =
        kind <= static_cast<uint8_t>(WarningKind::kRuntime) ? static_cast<WarningKind>(kind) : WarningKind::kUser;
    warning.text = in.get_string(kMaxTextBytes);
    reply.warnings.push_back(std::move(warning));
  }
  if (!reply.error.ok()) reply.error.message = in.get_string(kMaxTextBytes);
  if (!in.ok()) {
    return MakeError(ErrorCode::kMalformed,
                     "a reply of the executor does not decode; use a client and a flagosd of "
                     "one version");
  }
  const auto body = in.get_bytes(in.remaining());
  reply.body.assign(body.begin(), body.end());
  return reply;
}

}  // namespace flagos
