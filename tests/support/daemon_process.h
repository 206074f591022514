// SPDX-License-Identifier: Apache-2.0
// A real flagosd of the build tree, and clients of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/shm/memfd.h"
#include "proto/wire/attach.h"
#include "tests/support/session_client.h"
#include "tests/support/session_memory.h"

namespace flagos::testing {

// A folder of its own under /tmp, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const;  // returns the file's path

 private:
  std::string path_;
};

// True as soon as `condition` is, false after `patience`.
bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience = std::chrono::seconds(20));

// The processes whose parent is `pid`, zombies left out.
std::vector<pid_t> ChildrenOf(pid_t pid);
// Not there, or a zombie.
bool IsGone(pid_t pid);
size_t OpenFilesOf(pid_t pid);
// The daemon's descriptors once it rests: its only child is the warm executor, and their number has stood still. What
// an ended session held is closed a moment after its client has gone. Nullopt: it never came to rest.
std::optional<size_t> RestingFilesOf(pid_t daemon);
size_t ResidentBytesOf(pid_t pid);

class DaemonProcess {
 public:
  struct Options {
    std::string vendor = "null";
    std::vector<std::string> arguments;
    bool await = true;  // until it accepts clients
  };
  DaemonProcess() : DaemonProcess(Options{}) {}
  explicit DaemonProcess(const Options& options);
  // Kills what is left of it and its executors.
  ~DaemonProcess();

  const std::string& socket() const { return socket_; }
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Exit code, or minus the signal; nullopt: it still ran after `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience = std::chrono::seconds(20));
  std::string log() const;

 private:
  TemporaryFolder folder_;
  const std::string socket_, log_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// Attached to a flagosd. Throws where that fails.
class AttachedClient {
 public:
  explicit AttachedClient(const std::string& socket,
                          const AttachRequest& request = MakeAttachRequest(AttachKind::kOpen));
  // The same by a connection that is there already.
  AttachedClient(UniqueFd connection, const AttachRequest& request);

  const AttachReply& reply() const { return reply_; }
  const std::vector<DeviceRecord>& devices() const { return devices_; }
  SessionClient& session() { return *session_; }
  const ExecutorPage& page() { return session_->page(); }
  int connection() const { return connection_.get(); }
  bool executor_hung_up() const;
  void close() { connection_.reset(); }

 private:
  UniqueFd connection_, liveness_;
  AttachReply reply_{};
  std::vector<DeviceRecord> devices_;
  std::unique_ptr<SessionMemory> memory_;
  std::unique_ptr<SessionClient> session_;
};

// Sends bytes as they are to a flagosd and returns its reply; an error where there is none.
Result<AttachReply> Ask(int socket, std::span<const std::byte> bytes);

}  // namespace flagos::testing
