// SPDX-License-Identifier: Apache-2.0
#include "server/executor/rejoin.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "proto/socket/unix_socket.h"
#include "server/common/log.h"
#include "server/common/status.h"

namespace flagos::executor {
namespace {

constexpr int kConnectTimeout = 100;  // milliseconds; the listener's queue is full only where hundreds come at once
constexpr int kRecordTimeout = 5000;  // milliseconds for the rest of a record whose first byte is there

}  // namespace

Rejoiner::Rejoiner(std::string socket, Served served) : socket_(std::move(socket)), served_(std::move(served)) {}

UniqueFd Rejoiner::knock() const {
  UniqueFd socket;
  if (!possible() || TryConnectUnix(socket_, kConnectTimeout, socket) != 0) return {};
  ChannelRecord record = served_.record;
  record.kind = static_cast<uint32_t>(ChannelKind::kRejoin);
  record.device_count = static_cast<uint32_t>(served_.devices.size());
  record.pid = static_cast<uint32_t>(::getpid());
  const std::span<const DeviceRecord> devices(served_.devices);
  std::vector<std::byte> bytes(sizeof record + devices.size_bytes());
  std::memcpy(bytes.data(), &record, sizeof record);
  std::memcpy(bytes.data() + sizeof record, devices.data(), devices.size_bytes());
  int descriptors[kRejoinFdCount];
  descriptors[kRejoinRing] = served_.ring.get();
  descriptors[kRejoinExecutor] = served_.executor.get();
  descriptors[kRejoinClient] = served_.client;
  descriptors[kRejoinLease] = served_.lease;
  descriptors[kRejoinArbiter] = served_.arbiter;
  if (!SendRecord(socket.get(), bytes, descriptors).ok()) return {};
  return socket;
}

absl::Status Rejoiner::TakeAnswer(int connection) {
  ChannelRecord record{};
  std::vector<UniqueFd> fds;
  const Error error = ReceiveRecord(connection, std::as_writable_bytes(std::span(&record, 1)), &fds, kRecordTimeout);
  if (!error.ok()) return absl::UnavailableError(error.message);
  if (record.kind != static_cast<uint32_t>(ChannelKind::kRejoined)) {
    return absl::InvalidArgumentError("flagosd answered with another record; install both from one release");
  }
  if (record.status != 0) {
    return ToStatus(MakeError(ErrorCodeFromWire(record.status), ReadText(record.message)));
  }
  for (const UniqueFd& output : fds) {
    ::dup2(output.get(), STDOUT_FILENO);
    ::dup2(output.get(), STDERR_FILENO);
  }
  log::Reopen().IgnoreError();  // of a log without a file it cannot fail
  return absl::OkStatus();
}

}  // namespace flagos::executor
