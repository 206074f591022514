// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/attach.h"

#include <algorithm>
#include <bit>

#include "proto/shm/layout.h"
#include "proto/wire/records.h"

namespace flagos {
namespace {

std::string Range(uint16_t min, uint16_t max) {
  return min == max ? std::to_string(min) : std::to_string(min) + " to " + std::to_string(max);
}

Error Malformed(const std::string& what) {
  return MakeError(ErrorCode::kMalformed, what + "; the other end is not a flagos of this kind");
}

}  // namespace

AttachRequest MakeAttachRequest(AttachKind kind) {
  AttachRequest request{};
  request.magic = kAttachMagic;
  request.size = sizeof request;
  request.version_min = kProtocolVersionMin;
  request.version_max = kProtocolVersionMax;
  request.features = kFeatures;
  request.kind = static_cast<uint16_t>(kind);
  return request;
}

AttachReply MakeAttachReply(const Error& error) {
  AttachReply reply{};
  reply.magic = kAttachMagic;
  reply.size = sizeof reply;
  reply.status = static_cast<uint16_t>(error.code);
  CopyText(reply.message, error.message);
  return reply;
}

Result<AttachTerms> CheckAttachRequest(const AttachRequest& request) {
  if (request.magic != kAttachMagic) return Malformed("an attach request does not start with FLAGOSA1");
  if (request.size != sizeof request) return Malformed("an attach request says a size other than 256");
  if (request.kind != static_cast<uint16_t>(AttachKind::kDevices) &&
      request.kind != static_cast<uint16_t>(AttachKind::kOpen)) {
    return Malformed("an attach request is of an unknown kind");
  }
  if (!Terminated(request.name) || !Terminated(request.torch_version)) {
    return Malformed("an attach request has a text without an end");
  }
  const uint16_t version = std::min(request.version_max, kProtocolVersionMax);
  if (version < request.version_min || version < kProtocolVersionMin) {
    return MakeError(ErrorCode::kVersion,
                     "flagosd speaks protocol " + Range(kProtocolVersionMin, kProtocolVersionMax) + " and the client " +
                         Range(request.version_min, request.version_max) +
                         "; install the flagos package of flagosd's version in the job, or upgrade flagosd");
  }
  return AttachTerms{version, request.features & kFeatures};
}

Error CheckAttachReply(const AttachReply& reply) {
  if (reply.magic != kAttachMagic || reply.size != sizeof reply) {
    return Malformed("what answered at the endpoint is no flagosd");
  }
  if (!Terminated(reply.message) || !Terminated(reply.vendor) || !Terminated(reply.executor_torch) ||
      !Terminated(reply.session_name)) {
    return Malformed("an attach reply has a text without an end");
  }
  if (reply.status != 0) return MakeError(ErrorCodeFromWire(reply.status), ReadText(reply.message));
  if (reply.version < kProtocolVersionMin || reply.version > kProtocolVersionMax) {
    return MakeError(ErrorCode::kVersion, "flagosd chose protocol " + std::to_string(reply.version) +
                                              ", which this client does not speak; upgrade the flagos package");
  }
  if (reply.device_count > kMaxDevices) return Malformed("an attach reply names more devices than there can be");
  if (reply.session != 0 &&
      (reply.descriptors != kAttachFdCount || reply.device_count == 0 || reply.ring_bytes < kMinRingBytes ||
       reply.ring_bytes > kMaxRingBytes || !std::has_single_bit(reply.ring_bytes))) {
    return Malformed("an attach reply describes a session that cannot be");
  }
  return Error::Ok();
}

}  // namespace flagos
