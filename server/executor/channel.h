// SPDX-License-Identifier: Apache-2.0
// The executor's end of the channel to flagosd (server/common/executor_channel.h).
#pragma once

#include <mutex>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"
#include "proto/wire/attach.h"
#include "server/common/executor_channel.h"

namespace flagos::executor {

// A session as flagosd assigns it; owns the descriptors.
struct Assignment {
  uint64_t session = 0;
  uint64_t ring_bytes = 0;
  uint64_t arena_bytes = 0;
  uint32_t lease_entry = 0;
  bool end_with_daemon = false;
  UniqueFd ring, executor, arena, liveness, client, lease, arbiter;
};

// What flagosd says.
struct ChannelMessage {
  ChannelKind kind = ChannelKind::kEnd;  // kAssign or kEnd
  Assignment assignment;                 // kAssign
  std::string reason;                    // kEnd
};

// Receiving, fd() and replace() are for one thread at a time, sending for any: records are sent whole.
class Channel {
 public:
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // Goes on with another flagosd.
  void replace(UniqueFd fd);

  absl::Status send_ready(const std::string& vendor, const std::string& torch_version,
                          std::span<const DeviceRecord> devices);
  // kReady with why there is nothing ready; flagosd learns it instead of an exit code alone.
  absl::Status send_not_ready(const std::string& vendor, const absl::Status& why);
  absl::Status send_assigned(uint64_t session, const absl::Status& status);
  absl::Status send_ended(uint64_t session, const absl::Status& status, const std::string& cause);

  // The next record, once fd() is readable. kUnavailable: flagosd is gone.
  absl::StatusOr<ChannelMessage> receive();

 private:
  absl::Status send(ChannelRecord record, std::span<const DeviceRecord> devices = {});

  std::mutex mutex_;  // of sending and replacing
  UniqueFd fd_;
};

}  // namespace flagos::executor
