// SPDX-License-Identifier: Apache-2.0
// The process of an executor, however it was started.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"
#include "server/daemon/config/config.h"
#include "server/daemon/event_loop.h"
#include "server/daemon/executors/exit_status.h"
#include "server/daemon/executors/spec.h"

namespace flagos::daemon {

// Loop thread only. Destroying it leaves the process alone.
class ExecutorHandle {
 public:
  virtual ~ExecutorHandle() = default;
  // 0: not known yet. The executor says it itself, then.
  virtual pid_t pid() const = 0;
  // The unit of systemd that it runs in; empty: none.
  virtual std::string unit() const { return {}; }
  // Ends it and everything that it started, at once. Has no effect on what has ended.
  virtual void kill() = 0;
  // Calls `exited` once, from the loop, when it has ended; it may destroy the handle. A second call takes the place of
  // the first.
  virtual void on_exit(EventLoop& loop, std::function<void(const ExitStatus&)> exited) = 0;
};

// A process that is about to run, with our ends of its channel and of what it prints. Both are non-blocking.
struct SpawnedExecutor {
  std::unique_ptr<ExecutorHandle> handle;
  UniqueFd channel;
  UniqueFd output;
};

// A way to start executors. Loop thread only.
class Spawner {
 public:
  virtual ~Spawner() = default;
  // `id` is unique among the executors of this flagosd and of those before it that still run.
  virtual absl::StatusOr<SpawnedExecutor> spawn(const ExecutorSpec& spec, const std::string& id) = 0;
  // One that an earlier flagosd started: `pidfd` is of `pid`, and `unit` what its handle's unit() said.
  virtual std::unique_ptr<ExecutorHandle> adopt(const std::string& unit, pid_t pid, UniqueFd pidfd) = 0;
};

// The one that [daemon] spawner names.
std::unique_ptr<Spawner> MakeSpawner(EventLoop& loop, const Config& config);

}  // namespace flagos::daemon
