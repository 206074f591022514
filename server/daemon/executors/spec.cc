// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/spec.h"

#include <utility>

#include "server/common/strings.h"
#include "server/executor/manifest.h"

namespace flagos::daemon {

ExecutorSpec ExecutorSpec::From(const Config& config, DeviceSet devices) {
  ExecutorSpec spec{.program = config.executor,
                    .vendor = config.devices.vendor,
                    .vendor_dir = config.vendor_dir,
                    .libtorch = config.vendor().libtorch,
                    .options = config.vendor().options,
                    .devices = std::move(devices),
                    .device_nodes = {},
                    .daemon_socket = ExecutorSocket(config)};
  if (config.daemon.spawner == SpawnerKind::kSystemd) {
    // Where it cannot be read the executor says so itself.
    const auto manifest = executor::ReadManifest(Cat(spec.vendor_dir, "/", spec.vendor, "/manifest.toml"));
    if (manifest.ok()) spec.device_nodes = manifest->device_nodes;
  }
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
  if (!daemon_socket.empty()) add("--daemon", daemon_socket);
  if (!libtorch.empty()) add("--libtorch", libtorch);
  if (!devices.empty()) {
    std::string list;
    for (const uint32_t device : devices) list += Cat(list.empty() ? "" : ",", device);
    add("--devices", list);
  }
  for (const auto& [key, value] : options) add("--option", Cat(key, "=", value));
  return arguments;
}

}  // namespace flagos::daemon
