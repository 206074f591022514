// SPDX-License-Identifier: Apache-2.0
// An executor by its pidfd: a child of flagosd, or one that an earlier flagosd started.
#pragma once

#include "server/daemon/executors/handle.h"

namespace flagos::daemon {

// How a process that is not our child ended nobody tells: its ExitStatus is unknown().
class PidfdHandle final : public ExecutorHandle {
 public:
  PidfdHandle(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid() const override { return pid_; }
  void kill() override;
  void on_exit(EventLoop& loop, std::function<void(const ExitStatus&)> exited) override;

 private:
  const pid_t pid_;
  UniqueFd pidfd_;
  Watch watch_;
};

// Executors as children, in sessions of their own (no terminal signal reaches them).
class ForkSpawner final : public Spawner {
 public:
  absl::StatusOr<SpawnedExecutor> spawn(const ExecutorSpec& spec, const std::string& id) override;
  std::unique_ptr<ExecutorHandle> adopt(const std::string& unit, pid_t pid, UniqueFd pidfd) override;
};

}  // namespace flagos::daemon
