// SPDX-License-Identifier: Apache-2.0
// Finding a new flagosd for a session whose flagosd has gone (kRejoin in server/common/executor_channel.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"
#include "proto/wire/attach.h"
#include "server/common/executor_channel.h"

namespace flagos::executor {

// What is told to a new flagosd: which session this is, and what lets it go on looking after it.
struct Served {
  ChannelRecord record{};  // session, ring_bytes, arena_bytes, lease_entry, vendor, torch_version
  std::vector<DeviceRecord> devices;
  UniqueFd ring, executor;  // the session's regions
  int client = -1;          // pidfd; borrowed, as is
  int lease = -1;           // the lease's page
  int arbiter = -1;         // the arbiter's
};

// For one thread.
class Rejoiner {
 public:
  // `socket`: where a flagosd listens for executors. Empty: knock() finds nobody.
  Rejoiner(std::string socket, Served served);

  bool possible() const { return !socket_.empty(); }
  // A connection to whoever listens there, on which the session has been told; invalid: nobody does. Its answer may
  // take as long as flagosd takes to start. Never blocks for long.
  UniqueFd knock() const;

  // Reads the answer, once the connection is readable, and makes the new flagosd the reader of what this process
  // prints. kUnavailable: it went without answering; ask again. Anything else is its refusal, which is final.
  static absl::Status TakeAnswer(int connection);

 private:
  const std::string socket_;
  const Served served_;
};

}  // namespace flagos::executor
