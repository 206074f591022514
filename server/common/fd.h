// SPDX-License-Identifier: Apache-2.0
// Descriptors: modes, limits, and reading fixed records without ever blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "proto/shm/memfd.h"

namespace flagos {

absl::Status SetNonBlocking(int fd);
absl::Status SetCloseOnExec(int fd, bool on);

// Raises the soft limit of open files to the hard one; returns the limit in force afterwards.
uint64_t RaiseFileLimit();

// Descriptors that this process has open. For tests and figures.
size_t CountOpenFiles();

// Puts a file of this mode, whatever the umask is, in the place of `path`, as a whole: a reader has the old one or the
// new one. `advice` says what to do where it cannot be written.
absl::Status ReplaceFile(const std::string& path, std::string_view text, unsigned mode, std::string_view advice);

// The target of /proc/self/exe; empty where /proc is not mounted.
std::string OwnExecutable();

// Collects records of a fixed size from a non-blocking socket. Descriptors that come along are closed by the kernel.
class RecordReader {
 public:
  enum class Status {
    kMore,    // nothing to read now; call again when the socket is readable
    kRecord,  // bytes() holds a whole record; next() starts the one after it
    kClosed,  // the peer closed between records
    kBroken,  // the peer closed within a record, or the socket failed
  };

  explicit RecordReader(size_t size) : buffer_(size) {}

  Status read(int socket);
  std::span<const std::byte> bytes() const { return buffer_; }
  // Starts a record of `size` bytes.
  void next(size_t size);

 private:
  std::vector<std::byte> buffer_;
  size_t filled_ = 0;
};

}  // namespace flagos
