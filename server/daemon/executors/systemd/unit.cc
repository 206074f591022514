// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/systemd/unit.h"

#include <cstdint>
#include <filesystem>
#include <vector>

#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

namespace fs = std::filesystem;

constexpr int kChannel = 0;                    // the executor finds it as its standard input
constexpr uint64_t kStopTimeout = 15'000'000;  // microseconds
constexpr int32_t kOomScore = -500;            // a session's job is worth more than what it computes for
constexpr uint64_t kFiles = 65'536;

// Appends properties, and remembers the first failure.
class Properties {
 public:
  explicit Properties(sd_bus_message* call) : call_(call) {}
  template <class... Values>
  void add(const char* name, const char* type, Values... values) {
    if (result_ >= 0) result_ = sd_bus_message_append(call_, "(sv)", name, type, values...);
  }
  // Of one more level than sd_bus_message_append() has arguments for: `fill` writes the variant's content.
  template <class Fill>
  void add_array(const char* name, const char* type, Fill fill) {
    step(sd_bus_message_open_container(call_, 'r', "sv"));
    step(sd_bus_message_append(call_, "s", name));
    step(sd_bus_message_open_container(call_, 'v', Cat("a", type).c_str()));
    step(sd_bus_message_open_container(call_, 'a', type));
    fill();
    for (int level = 0; level < 3; ++level) step(sd_bus_message_close_container(call_));
  }
  void step(int result) {
    if (result_ >= 0 && result < 0) result_ = result;
  }
  int result() const { return result_; }

 private:
  sd_bus_message* const call_;
  int result_ = 0;
};

void AddCommand(Properties& properties, sd_bus_message* call, const std::vector<std::string>& arguments) {
  properties.add_array("ExecStart", "(sasb)", [&] {
    properties.step(sd_bus_message_open_container(call, 'r', "sasb"));
    properties.step(sd_bus_message_append(call, "s", arguments.front().c_str()));
    properties.step(sd_bus_message_open_container(call, 'a', "s"));
    for (const std::string& argument : arguments) properties.step(sd_bus_message_append(call, "s", argument.c_str()));
    properties.step(sd_bus_message_close_container(call));
    properties.step(sd_bus_message_append(call, "b", 0));
    properties.step(sd_bus_message_close_container(call));
  });
}

void AddSandbox(Properties& properties, sd_bus_message* call, const ExecutorSpec& spec) {
  properties.add("DynamicUser", "b", 1);
  properties.add("NoNewPrivileges", "b", 1);
  properties.add("CapabilityBoundingSet", "t", uint64_t{0});
  properties.add("PrivateNetwork", "b", 1);
  properties.add("PrivateIPC", "b", 1);
  properties.add("ProtectHome", "s", "yes");
  for (const char* protect :
       {"ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ProtectClock",
        "ProtectHostname", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality"}) {
    properties.add(protect, "b", 1);
  }
  properties.add("RestrictNamespaces", "t", uint64_t{0});
  properties.add("RestrictAddressFamilies", "(bas)", 1, 1, "AF_UNIX");
  properties.add("SystemCallArchitectures", "as", 1, "native");
  properties.add("SystemCallFilter", "(bas)", 1, 1, "@system-service");
  properties.add("SystemCallErrorNumber", "i", EPERM);
  properties.add("UMask", "u", uint32_t{0077});
  properties.add("DevicePolicy", "s", "closed");
  if (!spec.device_nodes.empty()) {
    properties.add_array("DeviceAllow", "(ss)", [&] {
      for (const std::string& node : spec.device_nodes) {
        properties.step(sd_bus_message_append(call, "(ss)", node.c_str(), "rw"));
      }
    });
    properties.add("SupplementaryGroups", "as", 2, "render", "video");
  }
  if (spec.daemon_socket.empty()) return;
  // flagosd's folder is empty for an executor, but for the folder of the socket: the socket may be made anew.
  const fs::path sockets = fs::path(spec.daemon_socket).parent_path();
  properties.add("TemporaryFileSystem", "a(ss)", 1, sockets.parent_path().c_str(), "ro,mode=0755");
  properties.add("BindReadOnlyPaths", "a(ssbt)", 1, sockets.c_str(), sockets.c_str(), 0, uint64_t{0});
}

}  // namespace

absl::Status DescribeUnit(sd_bus_message* call, const std::string& unit, const ExecutorSpec& spec,
                          const ExecutorPipes& pipes) {
  Properties properties(call);
  properties.step(sd_bus_message_append(call, "ss", unit.c_str(), "fail"));
  properties.step(sd_bus_message_open_container(call, 'a', "(sv)"));
  properties.add("Description", "s", Cat("Executor of flagosd for vendor ", spec.vendor).c_str());
  properties.add("Slice", "s", kSessionsSlice);
  properties.add("Type", "s", "exec");
  properties.add("AddRef", "b", 1);  // so that it can be asked how it ended
  properties.add("KillMode", "s", "control-group");
  properties.add("TimeoutStopUSec", "t", kStopTimeout);
  properties.add("OOMPolicy", "s", "kill");
  properties.add("OOMScoreAdjust", "i", kOomScore);
  properties.add("LimitNOFILE", "t", kFiles);
  properties.add("LimitMEMLOCK", "t", UINT64_MAX);
  properties.add("StandardInputFileDescriptor", "h", pipes.their_channel.get());
  properties.add("StandardOutputFileDescriptor", "h", pipes.their_output.get());
  properties.add("StandardErrorFileDescriptor", "h", pipes.their_output.get());
  AddSandbox(properties, call, spec);
  AddCommand(properties, call, spec.arguments(kChannel));
  properties.step(sd_bus_message_close_container(call));
  properties.step(sd_bus_message_append(call, "a(sa(sv))", 0));
  if (properties.result() < 0) return BusError(properties.result(), "cannot describe the unit");
  return absl::OkStatus();
}

}  // namespace flagos::daemon
