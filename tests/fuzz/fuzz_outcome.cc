// SPDX-License-Identifier: Apache-2.0
// What an executor may answer to a call.
#include "proto/wire/signature.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  flagos::ByteReader in(std::as_bytes(std::span(data, size)));
  flagos::Outcome outcome;
  if (!flagos::DecodeOutcome(in, outcome)) {
    FUZZ_CHECK(!in.ok());
    return 0;
  }
  FUZZ_CHECK(flagos::OutputHandles(outcome) <= size);
  flagos::ByteWriter out;
  flagos::EncodeOutcome(out, outcome);
  flagos::ByteReader again(out.bytes());
  flagos::Outcome second;
  FUZZ_CHECK(flagos::DecodeOutcome(again, second) && again.done());
  return 0;
}
