// SPDX-License-Identifier: Apache-2.0
// The socket in the file system, of which one flagosd at a time is the owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"

namespace flagos::daemon {

// Who may have PATH: the holder of a lock on PATH.lock, which the kernel drops when its process ends. Removes both
// files when destroyed.
class SocketFile {
 public:
  // Takes the lock and puts a listening socket of this mode in the place of whatever dead socket there is. The socket
  // appears under PATH with its mode set and already listening. kAlreadyExists: another flagosd, which the text names.
  static absl::StatusOr<std::unique_ptr<SocketFile>> Create(const std::string& path, mode_t mode = 0660);
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

  int fd() const { return socket_.get(); }

 private:
  SocketFile(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  absl::Status listen(mode_t mode);

  const std::string path_;
  UniqueFd lock_;
  UniqueFd socket_;
  ino_t inode_ = 0;
};

}  // namespace flagos::daemon
