// SPDX-License-Identifier: Apache-2.0
// The arena as memory that the devices reach by themselves.
#pragma once

#include <cstddef>
#include <span>

namespace flagos::cuda {

// Registers a growing part of it, from its beginning, where clients have their blocks: what is registered takes memory,
// and one copy must not reach from one registration into another. For the dispatch thread.
class PinnedArena {
 public:
  explicit PinnedArena(std::span<std::byte> arena) : arena_(arena) {}
  ~PinnedArena();
  PinnedArena(const PinnedArena&) = delete;
  PinnedArena& operator=(const PinnedArena&) = delete;

  // Before a copy from or to these bytes. Where they cannot be registered, copies take the driver's way round: slower,
  // and still right.
  void cover(std::span<const std::byte> bytes) {
    const size_t end = static_cast<size_t>(bytes.data() - arena_.data()) + bytes.size();
    if (end > registered_ && !refused_) [[unlikely]]
      grow(end);
  }

 private:
  void grow(size_t end);

  const std::span<std::byte> arena_;
  size_t registered_ = 0;
  bool refused_ = false;
};

}  // namespace flagos::cuda
