// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/spec.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "proto/socket/unix_socket.h"
#include "server/common/fd.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/executors/child_process.h"

namespace flagos::daemon {

ExecutorSpec ExecutorSpec::From(const Config& config, DeviceSet devices) {
  ExecutorSpec spec{.program = config.executor,
                    .vendor = config.devices.vendor,
                    .vendor_dir = config.vendor_dir,
                    .libtorch = config.vendor().libtorch,
                    .options = config.vendor().options,
                    .devices = std::move(devices)};
  if (config.devices.count != 0) spec.options["devices"] = std::to_string(config.devices.count);
  return spec;
}

std::vector<std::string> ExecutorSpec::arguments(int channel_fd) const {
  std::vector<std::string> arguments = {
      program, "--vendor", vendor, "--vendor-dir", vendor_dir, "--channel-fd", std::to_string(channel_fd)};
  const auto add = [&](const char* flag, std::string value) {
    arguments.emplace_back(flag);
    arguments.push_back(std::move(value));
  };
  if (!libtorch.empty()) add("--libtorch", libtorch);
  if (!devices.empty()) {
    std::string list;
    for (const uint32_t device : devices) list += Cat(list.empty() ? "" : ",", device);
    add("--devices", list);
  }
  for (const auto& [key, value] : options) add("--option", Cat(key, "=", value));
  return arguments;
}

absl::StatusOr<SpawnedExecutor> Spawn(const ExecutorSpec& spec) {
  auto pair = ToStatusOr(UnixPair());
  if (!pair.ok()) return pair.status();
  auto& [ours, theirs] = *pair;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return SystemError(errno, "cannot create a pipe", "raise the limit of open files");
  UniqueFd output(pipe[0]);
  const UniqueFd child_output(pipe[1]);
  FLAGOS_RETURN_IF_ERROR(SetNonBlocking(ours.get()));
  FLAGOS_RETURN_IF_ERROR(SetNonBlocking(output.get()));

  auto child = StartChild(spec.arguments(kChildChannelFd), theirs.get(), child_output.get(), "the executor",
                          "install flagos-executor beside flagosd, or name it with --executor");
  if (!child.ok()) return child.status();
  return SpawnedExecutor{child->pid, std::move(child->pidfd), std::move(ours), std::move(output)};
}

}  // namespace flagos::daemon
