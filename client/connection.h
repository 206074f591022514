// SPDX-License-Identifier: Apache-2.0
// Reaching flagosd: asking it for its devices, and opening a session.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/endpoint.h"
#include "proto/shm/memfd.h"
#include "proto/wire/attach.h"
#include "proto/wire/error.h"

namespace flagos::client {

// The devices that a process has. Fixed at the first query: autograd sizes its queues by the count.
struct DeviceList {
  Endpoint endpoint;
  uint32_t count = 0;
  std::vector<DeviceRecord> records;  // empty for an embedded daemon, which is not started for the asking
  Error error;                        // why the count is 0
};

// The devices at the endpoint of the environment: asked of flagosd without a session; or, embedded, what the
// environment says. An answer is waited for two seconds, a flagosd that says that it still starts as long as opening a
// session may take. The first answer stays, also a failure, but not a time-out: the next call asks again. What was
// returned stays valid. Thread safe; never throws.
const DeviceList& Devices() noexcept;
// Says that this process has no device, why, and that it does not ask again. REQUIRES Devices().count == 0
Error NoDeviceError();
// In a forked child, before anything else: where the parent was still asking, the child asks for itself.
void RenewDevicesAfterFork() noexcept;

// The process's own facts that an attach tells or needs.
struct ProcessInfo {
  std::string torch_version;
  std::string libtorch;  // folder of the libtorch_cpu.so in use, for the executor of an embedded daemon
  std::string bin;       // folder of flagosd, for an embedded daemon
};

// An opened session as flagosd handed it over.
struct Connection {
  Endpoint endpoint;
  UniqueFd attach;    // to flagosd; silent from now on
  UniqueFd liveness;  // hangs up when the executor is gone
  Mapping ring;       // ClientPage and the ring's bytes
  Mapping executor;   // ExecutorPage and the reply slots; read-only
  Mapping arena;
  UniqueFd arena_fd;  // for a forked child's own mapping
  uint64_t ring_bytes = 0;
  uint64_t session = 0;
  uint64_t features = 0;  // that flagosd and this client have
  uint32_t generation = 1;
  uint32_t executor_pid = 0;
  std::string name;  // as flagosctl shows it
  std::string vendor;
  std::string executor_torch;  // version of the executor's libtorch; empty if it has none
  std::vector<DeviceRecord> devices;
};

// Opens a session; waits for an executor to start where none is warm. Starts an embedded daemon first where the
// endpoint says so.
Result<Connection> Open(const Endpoint& endpoint, const ProcessInfo& process);

}  // namespace flagos::client
