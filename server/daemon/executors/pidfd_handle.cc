// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/pidfd_handle.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "server/daemon/executors/child_process.h"
#include "server/daemon/executors/executor_pipes.h"

namespace flagos::daemon {

void PidfdHandle::kill() { ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0); }

void PidfdHandle::on_exit(EventLoop& loop, std::function<void(const ExitStatus&)> exited) {
  watch_.cancel();  // a descriptor is watched once
  watch_ = loop.watch(pidfd_.get(), EPOLLIN, [this, exited = std::move(exited)](uint32_t) {
    const auto status = Reap(pidfd_.get());
    if (!status) return;
    watch_.cancel();
    exited(*status);
  });
}

absl::StatusOr<SpawnedExecutor> ForkSpawner::spawn(const ExecutorSpec& spec, const std::string&) {
  auto pipes = MakeExecutorPipes();
  if (!pipes.ok()) return pipes.status();
  auto child = StartChild(spec.arguments(kChildChannelFd), pipes->their_channel.get(), pipes->their_output.get(),
                          "the executor", "install flagos-executor beside flagosd, or name it with --executor");
  if (!child.ok()) return child.status();
  return SpawnedExecutor{std::make_unique<PidfdHandle>(child->pid, std::move(child->pidfd)), std::move(pipes->channel),
                         std::move(pipes->output)};
}

std::unique_ptr<ExecutorHandle> ForkSpawner::adopt(const std::string&, pid_t pid, UniqueFd pidfd) {
  return std::make_unique<PidfdHandle>(pid, std::move(pidfd));
}

}  // namespace flagos::daemon
