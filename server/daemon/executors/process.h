// SPDX-License-Identifier: Apache-2.0
// One executor as flagosd sees it: a child process, its channel, and what it prints.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/attach.h"
#include "server/common/executor_channel.h"
#include "server/common/fd.h"
#include "server/daemon/event_loop.h"
#include "server/daemon/executors/exit_status.h"
#include "server/daemon/executors/handle.h"
#include "server/daemon/executors/spec.h"

namespace flagos::daemon {

class ExecutorProcess;

// Who owns an executor at the moment: first the pool, then a session. Called on the loop; an owner may destroy the
// executor from exited() only.
class ExecutorOwner {
 public:
  virtual ~ExecutorOwner() = default;
  // The vendor has started and described its devices, or could not (`error`).
  virtual void executor_ready(ExecutorProcess& executor, const Error& error) = 0;
  // The session that it was given is served, or cannot be.
  virtual void executor_assigned(ExecutorProcess& executor, const Error& error) = 0;
  // It ends by itself, for this cause; its exit follows.
  virtual void executor_ending(ExecutorProcess& executor, const std::string& cause) = 0;
  // The process is gone and reaped. Always the last call.
  virtual void executor_exited(ExecutorProcess& executor, const ExitStatus& status) = 0;
};

// What an executor is given with its session. Descriptors are borrowed for the call, in the order of ChannelDescriptor.
struct Assignment {
  uint64_t session = 0;
  uint64_t ring_bytes = 0;
  uint64_t arena_bytes = 0;
  uint32_t lease_entry = 0;
  uint32_t flags = 0;
  std::array<int, kChannelFdCount> descriptors{};
};

// Loop thread only. What the executor says is checked, and its texts are made valid UTF-8: a vendor's bug in it is not
// ours.
class ExecutorProcess {
 public:
  static absl::StatusOr<std::unique_ptr<ExecutorProcess>> Start(EventLoop& loop, Spawner& spawner,
                                                                const ExecutorSpec& spec, std::string id,
                                                                ExecutorOwner* owner);
  // One that an earlier flagosd started and that serves a session. `ready` is its kRejoin.
  static std::unique_ptr<ExecutorProcess> Adopt(EventLoop& loop, SpawnedExecutor process, std::string id,
                                                const DeviceSet& devices, const ChannelRecord& ready,
                                                std::vector<DeviceRecord> records, ExecutorOwner* owner);
  // Kills the process where it still runs and was not let go.
  ~ExecutorProcess();
  ExecutorProcess(const ExecutorProcess&) = delete;
  ExecutorProcess& operator=(const ExecutorProcess&) = delete;

  void set_owner(ExecutorOwner* owner) { owner_ = owner; }
  const std::string& id() const { return id_; }
  // 0: not known before it is ready.
  pid_t pid() const { return pid_; }
  const std::string& unit() const { return unit_; }
  const DeviceSet& device_set() const { return device_set_; }

  // Known once it is ready.
  const std::vector<DeviceRecord>& devices() const { return devices_; }
  const std::string& vendor() const { return vendor_; }
  const std::string& torch_version() const { return torch_version_; }

  // Gives it its session. Never blocks; where the executor does not take the record, it is as good as dead.
  Error assign(const Assignment& assignment);
  // Asks it to end after what it is doing. `reason` is told to the client.
  void end(std::string_view reason);
  void kill();
  // Leaves the process alone: it goes on without flagosd.
  void let_go();

  // The last lines that it printed, for an error's text: printable, of a kilobyte at most; empty if none.
  std::string last_output() const;

 private:
  ExecutorProcess(EventLoop& loop, std::string id, const DeviceSet& devices, SpawnedExecutor process,
                  ExecutorOwner* owner);
  void read_channel();
  void handle(const ChannelRecord& record);
  void describe(const ChannelRecord& record);
  void take_devices(std::vector<DeviceRecord> devices);
  void finish_ready();
  void read_output();
  void take_line(std::string line);
  void broken(const char* what);
  void handle_exit(const ExitStatus& status);

  const std::string id_;
  const DeviceSet device_set_;
  SpawnedExecutor process_;  // its handle: until it was let go
  const std::string unit_;
  pid_t pid_;
  ExecutorOwner* owner_;
  bool exited_ = false;
  std::optional<ExitStatus> told_end_;  // as its last record has it

  RecordReader reader_{sizeof(ChannelRecord)};
  bool reading_devices_ = false;
  std::vector<DeviceRecord> devices_;
  std::string vendor_;
  std::string torch_version_;

  std::string partial_line_;
  std::vector<std::string> last_lines_;
  Clock::time_point line_window_{};
  uint32_t lines_in_window_ = 0;

  Watch channel_watch_, output_watch_;
};

}  // namespace flagos::daemon
