// SPDX-License-Identifier: Apache-2.0
// The bytes that client and executor share: staging for copies, and what PyTorch calls pinned host memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proto/wire/signature.h"

namespace flagos::client {

// Best fit with coalescing. Thread safe. A freed block that the executor may still be reading or writing is reused only
// once the executor has said that it is done. Memory of large freed blocks goes back to the system.
class Arena {
 public:
  // Whether the record `sequence` of a stream slot is complete, without waiting.
  using IsComplete = std::function<bool(uint16_t stream, uint64_t sequence)>;

  // `bytes` is the mapped arena and outlives this. Large blocks give their pages back to the kernel when they are free,
  // but not while `in_place` (ExecutorPage::arena_in_place; null: never) is set.
  Arena(std::span<std::byte> bytes, IsComplete is_complete, const std::atomic<uint32_t>* in_place = nullptr);

  // A block of at least `size` bytes, aligned to 64 bytes, or to a page where it is a page or larger. nullptr when
  // there is no room now. Never blocks; see Session::allocate_arena() for one that waits for what is held.
  std::byte* allocate(size_t size) noexcept;

  // Ends the caller's use of a block; `pointer` is what allocate() returned, or nullptr.
  void free(void* pointer) noexcept;

  // The executor uses the block that `pointer` lies in until the record `sequence` of the stream slot is complete: a
  // free() before that takes effect then. REQUIRES that this record or a later one of the stream has kFlagNotify.
  void hold_until(const void* pointer, uint16_t stream, uint64_t sequence) noexcept;

  // How a record names [pointer, pointer + size); nullopt where that is not inside one live block.
  std::optional<ArenaRange> range_of(const void* pointer, size_t size = 1) const noexcept;
  // Lock-free: false for every pointer outside the arena.
  bool contains(const void* pointer) const noexcept {
    const auto* const at = static_cast<const std::byte*>(pointer);
    return at >= bytes_.data() && at < bytes_.data() + bytes_.size();
  }

  // Reuses what is no longer held; allocate() does it by itself.
  void reclaim() noexcept {
    const std::lock_guard lock(mutex_);
    collect();
  }

  size_t size() const { return bytes_.size(); }
  // Bytes of live and of held blocks. Lock-free.
  size_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

  // What the oldest block that was freed and is still held waits for; nullopt if there is none.
  std::optional<std::pair<uint16_t, uint64_t>> oldest_hold() const;

 private:
  struct Use {
    uint16_t stream;
    uint64_t sequence;
  };
  struct Block {
    size_t size;
    std::vector<Use> uses;  // at most one for each stream
  };
  struct Held {
    size_t offset;
    Block block;
  };

  bool done(const Block& block) const;
  void release(size_t offset, size_t size);    // REQUIRES mutex_
  void collect_oldest();                       // REQUIRES mutex_
  void collect();                              // REQUIRES mutex_
  size_t find(size_t size, size_t alignment);  // REQUIRES mutex_

  const std::span<std::byte> bytes_;
  const IsComplete is_complete_;
  const std::atomic<uint32_t>* const in_place_;
  mutable std::mutex mutex_;
  std::map<size_t, Block> live_;                      // by offset. GUARDED_BY(mutex_)
  std::deque<Held> held_;                             // freed, in that order. GUARDED_BY(mutex_)
  std::map<size_t, size_t> free_by_offset_;           // size by offset. GUARDED_BY(mutex_)
  std::set<std::pair<size_t, size_t>> free_by_size_;  // (size, offset). GUARDED_BY(mutex_)
  std::atomic<size_t> in_use_{0};                     // changed under mutex_
};

}  // namespace flagos::client
