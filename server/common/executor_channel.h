// SPDX-License-Identifier: Apache-2.0
// Records between flagosd and an executor, on the stream socket that the executor inherits. An executor is started
// warm, says kReady, is given one session with kAssign, and ends with it. Where flagosd goes before the session does,
// the executor connects to the socket that --daemon names until a new flagosd answers its kRejoin.
#pragma once

#include <cstdint>

#include "proto/wire/attach.h"

namespace flagos {

enum class ChannelKind : uint32_t {
  kReady = 1,     // executor: vendor started (or not: `status`); then `device_count` DeviceRecords follow
  kAssign = 2,    // flagosd: a session, with kChannelFdCount descriptors
  kAssigned = 3,  // executor: the session is served (or not: `status`)
  kEnd = 4,       // flagosd: end the session after what is running; `message` is the reason told to the client
  kEnded = 5,     // executor: the last record; `message` is the cause
  kRejoin = 6,    // executor: what it serves, with kRejoinFdCount descriptors; `device_count` DeviceRecords follow
  kRejoined = 7,  // flagosd: the connection is its channel now (or not, and it need not ask again: `status`). With one
                  // descriptor, for what it prints
};

struct ChannelRecord {
  uint32_t kind;    // ChannelKind
  uint32_t status;  // ErrorCode
  uint64_t session;
  uint64_t ring_bytes;     // kAssign, kRejoin
  uint64_t arena_bytes;    // kAssign, kRejoin
  uint32_t pid;            // kReady, kRejoin: the executor's own, as it sees it
  uint32_t lease_entry;    // kAssign, kRejoin: the lease's place in the arbiter's page
  uint32_t device_count;   // kReady, kRejoin
  uint32_t flags;          // kAssign: kEndWithDaemon
  char vendor[32];         // kReady, kRejoin
  char torch_version[32];  // kReady, kRejoin
  char message[400];
};
static_assert(sizeof(ChannelRecord) == 512);

// The session ends when flagosd does (embedded); else it goes on without.
inline constexpr uint32_t kEndWithDaemon = 1;

// Order of the descriptors of kAssign: ring (read-only), executor region and arena (read-write), the executor's end of
// the liveness socket, a pidfd of the client, which the executor watches itself, the lease's memory page and the
// arbiter's page (read-write, proto/shm/lease_page.h and arbiter_page.h).
enum ChannelDescriptor {
  kChannelRing = 0,
  kChannelExecutor = 1,
  kChannelArena = 2,
  kChannelLiveness = 3,
  kChannelClient = 4,
  kChannelLease = 5,
  kChannelArbiter = 6,
  kChannelFdCount = 7
};

// Order of the descriptors of kRejoin: as of kAssign, as far as a new flagosd needs them.
enum RejoinDescriptor {
  kRejoinRing = 0,
  kRejoinExecutor = 1,
  kRejoinClient = 2,
  kRejoinLease = 3,
  kRejoinArbiter = 4,
  kRejoinFdCount = 5
};

// Command line of an executor:
//   flagos-executor --vendor NAME --vendor-dir DIR [--libtorch DIR] --channel-fd N [--daemon SOCKET] [--devices 0,1]
//   [--option KEY=VALUE]...
// DIR of --vendor-dir holds NAME/libflagos_NAME.so and NAME/manifest.toml; DIR of --libtorch holds libtorch_cpu.so.

}  // namespace flagos
