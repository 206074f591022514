// SPDX-License-Identifier: Apache-2.0
// A real flagos-executor, started and spoken to as flagosd does.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "proto/shm/memfd.h"
#include "server/common/executor_channel.h"
#include "tests/support/session_memory.h"

namespace flagos::testing {

// Folder of the build tree that this test program lies in.
std::string BuildFolder();

// A child that does nothing until it is told to end or killed, with its pidfd: somebody's client. It holds copies of
// the descriptors that were open when it was made.
class IdleProcess {
 public:
  IdleProcess();
  ~IdleProcess();
  int pidfd() const { return pidfd_.get(); }
  void kill();

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

class ExecutorProcess {
 public:
  struct Options {
    std::string vendor = "null";
    std::string vendor_dir;  // empty: the build tree's
    std::vector<std::string> arguments;
  };
  ExecutorProcess() : ExecutorProcess(Options{}) {}
  explicit ExecutorProcess(const Options& options);
  // Kills it if it still runs.
  ~ExecutorProcess();

  // The next record from the executor; nullopt when it closed the channel or said nothing for a while.
  std::optional<ChannelRecord> receive();
  // DeviceRecords that follow kReady.
  std::vector<DeviceRecord> receive_devices(uint32_t count);
  // Receives kReady with its devices; throws where it is not ok.
  void await_ready();
  // Gives it a session whose client is `client_pidfd`; the other end of its liveness socket is returned.
  UniqueFd assign(const SessionMemory& memory, int client_pidfd, uint32_t flags = 0);
  // assign(), then receives kAssigned.
  UniqueFd assign_and_wait(const SessionMemory& memory, int client_pidfd, uint32_t flags = 0);
  void send_end(const std::string& reason);
  void send(const ChannelRecord& record, std::span<const int> fds = {});
  void close_channel() { channel_.reset(); }
  void signal(int number);

  // Exit code, or minus the signal; nullopt: it still ran after `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience = std::chrono::seconds(20));
  // What it wrote to standard error so far.
  std::string log() const;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_, channel_, log_;
  std::optional<int> status_;
};

}  // namespace flagos::testing
