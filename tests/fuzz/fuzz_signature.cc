// SPDX-License-Identifier: Apache-2.0
// What a client may define as a signature. What decodes must encode, and decode to the same again.
#include "proto/wire/signature.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto first = flagos::DecodeSignature(std::as_bytes(std::span(data, size)));
  if (!first.ok()) {
    FUZZ_CHECK(first.error().code == flagos::ErrorCode::kMalformed && !first.error().message.empty());
    return 0;
  }
  FUZZ_CHECK(first.value().inputs <= UINT16_MAX && first.value().free_bytes % 8 == 0);
  for (const auto& argument : first.value().arguments) {
    FUZZ_CHECK(argument.tensor.numel() >= 0 && argument.tensor.required_bytes() <= uint64_t{1} << 62);
  }
  flagos::ByteWriter out;
  flagos::EncodeSignature(out, first.value());
  FUZZ_CHECK(out.size() <= size);
  const auto second = flagos::DecodeSignature(out.bytes());
  FUZZ_CHECK(second.ok());
  FUZZ_CHECK(second.value().inputs == first.value().inputs && second.value().free_bytes == first.value().free_bytes);
  return 0;
}
