// SPDX-License-Identifier: Apache-2.0
// Attach records of either side: the bytes of a request, or of a reply.
#include <cstring>

#include "proto/shm/layout.h"
#include "proto/wire/attach.h"
#include "proto/wire/records.h"
#include "tests/fuzz/check.h"

namespace {

// The first bytes of an input, zeros where it is shorter.
template <class Record>
Record From(const uint8_t* data, size_t size) {
  Record record{};
  if (size != 0) std::memcpy(static_cast<void*>(&record), data, size < sizeof record ? size : sizeof record);
  return record;
}

void CheckRequest(const flagos::AttachRequest& request) {
  const auto terms = flagos::CheckAttachRequest(request);
  if (!terms.ok()) {
    FUZZ_CHECK(!terms.error().message.empty());
    return;
  }
  FUZZ_CHECK(terms.value().version >= flagos::kProtocolVersionMin &&
             terms.value().version <= flagos::kProtocolVersionMax);
  FUZZ_CHECK((terms.value().features & ~flagos::kFeatures) == 0);
  FUZZ_CHECK(flagos::ReadText(request.name).size() < sizeof request.name);
}

void CheckReply(const flagos::AttachReply& reply) {
  if (!flagos::CheckAttachReply(reply).ok()) return;
  FUZZ_CHECK(reply.device_count <= flagos::kMaxDevices);
  // The ring is indexed with `ring_bytes - 1` as a mask.
  FUZZ_CHECK(reply.session == 0 || (reply.ring_bytes & (reply.ring_bytes - 1)) == 0);
  FUZZ_CHECK(reply.session == 0 || reply.ring_bytes >= flagos::kMinRingBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CheckRequest(From<flagos::AttachRequest>(data, size));
  CheckReply(From<flagos::AttachReply>(data, size));
  return 0;
}
