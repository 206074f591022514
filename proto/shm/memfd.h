// SPDX-License-Identifier: Apache-2.0
// Shared regions: sealed memfds and their mappings. A region never changes its size after it is made, so a peer cannot
// turn our access into SIGBUS by truncating it.
#pragma once

#include <boost/interprocess/detail/os_file_functions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <cstdint>

#include "proto/wire/error.h"

namespace flagos {

// A file descriptor that closes itself. Move only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// A new memfd of `bytes` bytes (rounded up to whole pages), sealed against shrinking, growing and further seals.
// Close-on-exec. Pages take memory when first touched. Nobody but its maker can open it again, and that for reading
// only: a peer has the access of the descriptor that it was passed.
Result<UniqueFd> CreateRegion(const char* name, uint64_t bytes);

// The same region through a descriptor that can only be mapped for reading.
Result<UniqueFd> ReopenReadOnly(int fd);

enum class Access { kReadOnly, kReadWrite };

// A mapping of a whole region. Excluded from children of fork (MADV_DONTFORK) unless inherit() was called. Move only;
// unmaps on destruction.
class Mapping {
 public:
  Mapping() = default;
  // Refuses a descriptor that is not a sealed memfd of at least `min_bytes`: what a peer passed is not trusted.
  static Result<Mapping> Map(int fd, Access access, uint64_t min_bytes);

  std::byte* data() const { return static_cast<std::byte*>(region_.get_address()); }
  size_t size() const { return region_.get_size(); }
  explicit operator bool() const { return size() != 0; }

  // Children of fork get the mapping, shared with this process, until they call one of the next two.
  void inherit() const noexcept;
  // In a forked child that inherited it: what the child writes is its own from now on; what it has not written is still
  // read from the region, which lives as long as the mapping. `fd` is the region's. Where that fails nothing is mapped.
  // Safe in a handler of fork.
  void make_private(int fd) const noexcept;
  // In a forked child that inherited it: nothing is mapped there any more. Safe in a handler of fork.
  void drop() const noexcept;

 private:
  explicit Mapping(boost::interprocess::mapped_region region) : region_(std::move(region)) {}
  boost::interprocess::mapped_region region_;
};

}  // namespace flagos
