// SPDX-License-Identifier: Apache-2.0
#include "server/executor/channel.h"

#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "proto/socket/unix_socket.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::executor {
namespace {

constexpr int kRecordTimeout = 5000;  // milliseconds for the rest of a record whose first byte is there

ChannelRecord MakeRecord(ChannelKind kind, uint64_t session, const absl::Status& status) {
  ChannelRecord record{};
  record.kind = static_cast<uint32_t>(kind);
  record.session = session;
  const Error error = FromStatus(status);
  record.status = static_cast<uint32_t>(error.code);
  CopyText(record.message, Shorten(error.message, sizeof record.message - 1));
  return record;
}

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(
      Cat("flagosd sent ", what, "; install flagosd and flagos-executor from one release"));
}

}  // namespace

absl::Status Channel::send(ChannelRecord record, std::span<const DeviceRecord> devices) {
  std::vector<std::byte> bytes(sizeof record + devices.size_bytes());
  std::memcpy(bytes.data(), &record, sizeof record);
  if (!devices.empty()) std::memcpy(bytes.data() + sizeof record, devices.data(), devices.size_bytes());
  const std::lock_guard lock(mutex_);
  return ToStatus(SendRecord(fd_.get(), bytes));
}

void Channel::replace(UniqueFd fd) {
  const std::lock_guard lock(mutex_);
  fd_ = std::move(fd);
}

absl::Status Channel::send_ready(const std::string& vendor, const std::string& torch_version,
                                 std::span<const DeviceRecord> devices) {
  ChannelRecord record = MakeRecord(ChannelKind::kReady, 0, absl::OkStatus());
  record.device_count = static_cast<uint32_t>(devices.size());
  record.pid = static_cast<uint32_t>(::getpid());
  CopyText(record.vendor, vendor);
  CopyText(record.torch_version, torch_version);
  return send(record, devices);
}

absl::Status Channel::send_not_ready(const std::string& vendor, const absl::Status& why) {
  ChannelRecord record = MakeRecord(ChannelKind::kReady, 0, why);
  CopyText(record.vendor, vendor);
  return send(record);
}

absl::Status Channel::send_assigned(uint64_t session, const absl::Status& status) {
  return send(MakeRecord(ChannelKind::kAssigned, session, status));
}

absl::Status Channel::send_ended(uint64_t session, const absl::Status& status, const std::string& cause) {
  ChannelRecord record = MakeRecord(ChannelKind::kEnded, session, status);
  CopyText(record.message, cause);
  return send(record);
}

absl::StatusOr<ChannelMessage> Channel::receive() {
  ChannelRecord record{};
  std::vector<UniqueFd> fds;
  const Error error = ReceiveRecord(fd_.get(), std::as_writable_bytes(std::span(&record, 1)), &fds, kRecordTimeout);
  if (!error.ok()) return ToStatus(error);
  ChannelMessage message;
  message.kind = static_cast<ChannelKind>(record.kind);
  if (message.kind == ChannelKind::kEnd) {
    message.reason = ReadText(record.message);
    return message;
  }
  if (message.kind != ChannelKind::kAssign) return Malformed(Cat("a record of kind ", record.kind));
  if (fds.size() != kChannelFdCount) return Malformed(Cat("a session with ", fds.size(), " descriptors"));
  Assignment& assignment = message.assignment;
  assignment.session = record.session;
  assignment.ring_bytes = record.ring_bytes;
  assignment.arena_bytes = record.arena_bytes;
  assignment.lease_entry = record.lease_entry;
  assignment.end_with_daemon = (record.flags & kEndWithDaemon) != 0;
  assignment.ring = std::move(fds[kChannelRing]);
  assignment.executor = std::move(fds[kChannelExecutor]);
  assignment.arena = std::move(fds[kChannelArena]);
  assignment.liveness = std::move(fds[kChannelLiveness]);
  assignment.client = std::move(fds[kChannelClient]);
  assignment.lease = std::move(fds[kChannelLease]);
  assignment.arbiter = std::move(fds[kChannelArbiter]);
  return message;
}

}  // namespace flagos::executor
