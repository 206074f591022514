// SPDX-License-Identifier: Apache-2.0
// What may lie in a reply slot.
#include "proto/wire/reply.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto reply = flagos::DecodeReply(std::as_bytes(std::span(data, size)));
  if (!reply.ok()) return 0;
  FUZZ_CHECK(reply.value().error.code <= flagos::ErrorCode::kTimeout);
  FUZZ_CHECK(reply.value().body.size() <= size);
  flagos::ByteWriter out;
  flagos::EncodeReplyHead(out, reply.value().error, reply.value().deferred, reply.value().warnings);
  out.append(reply.value().body.data(), reply.value().body.size());
  const auto again = flagos::DecodeReply(out.bytes());
  FUZZ_CHECK(again.ok() && again.value().error.code == reply.value().error.code);
  FUZZ_CHECK(again.value().error.message == reply.value().error.message && again.value().body == reply.value().body);
  return 0;
}
