// SPDX-License-Identifier: Apache-2.0
// A device's memory: segments from the kernel, cut into blocks, which are kept for reuse when they are freed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "proto/shm/layout.h"
#include "proto/wire/records.h"
#include "vendors/cpu/segment.h"
#include "vendors/cpu/size_class.h"

namespace flagos::cpu {

class DevicePool;

// What all devices of a session may hold together. Thread safe.
class Quota {
 public:
  // Before memory is taken. 0: no limit.
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  uint64_t limit() const { return limit_; }
  bool take(uint64_t bytes) {
    if (limit_ == 0) return true;
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_) return true;
    give_back(bytes);
    return false;
  }
  void give_back(uint64_t bytes) {
    if (limit_ != 0) used_.fetch_sub(bytes, std::memory_order_relaxed);
  }

 private:
  uint64_t limit_ = 0;
  std::atomic<uint64_t> used_{0};
};

struct Slab;

// Its address stands in front of its data, so that the data alone names it: libraries free what they got by the
// pointer.
struct Block {
  std::byte* data;
  uint64_t size;         // that it can hold
  uint64_t counted = 0;  // that it counts for while it is allocated
  DevicePool* pool;
  Slab* slab;
  Block* next = nullptr;  // of the free blocks of its size
};

// A segment and how many of its blocks are allocated.
struct Slab {
  std::unique_ptr<Segment> segment;
  uint64_t used = 0;  // bytes cut off so far
  uint32_t live = 0;
};

// Thread safe. An executor never destroys its pools: tensors of static lifetime free their memory after everything
// else.
class DevicePool {
 public:
  // `capacity`: bytes that the device has.
  DevicePool(uint64_t capacity, Quota& quota) : capacity_(capacity), quota_(quota) {}
  // REQUIRES that no block is live.
  ~DevicePool() { trim(); }

  // Memory of at least `bytes` bytes, aligned to kAlignment, with old contents; null where the device, the quota or the
  // machine has no more. REQUIRES bytes > 0.
  Block* allocate(uint64_t bytes);
  // `data` of a block that allocate() gave.
  static void Release(std::byte* data);

  // Counts memory that lies elsewhere as the device's own; false where it, or the quota, has no more room.
  bool count(uint64_t bytes);
  void uncount(uint64_t bytes);

  MemoryStats stats() const;
  uint64_t capacity() const { return capacity_; }
  // Gives segments without live blocks back to the kernel.
  void trim();
  void reset_peaks();
  // Keeps these figures current from now on; null: none.
  void report_to(DeviceFigures* figures);

 private:
  // All REQUIRE mutex_.
  Block* take_small(size_t size_class);
  Block* take_large(uint64_t bytes);
  Block* cut(std::unique_ptr<Slab>& from, uint64_t slab_bytes, uint64_t bytes);
  Block* new_block(Slab& slab, uint64_t bytes);
  std::unique_ptr<Slab> new_slab(uint64_t bytes);
  // Takes what is to be allocated from the device and the quota.
  bool take(uint64_t bytes);
  void trim_locked();
  void report();

  void release(Block* block);

  const uint64_t capacity_;
  Quota& quota_;
  mutable std::mutex mutex_;
  // All below GUARDED_BY(mutex_).
  std::array<Block*, kSizeClasses> free_{};
  std::multimap<uint64_t, Block*> free_large_;            // by size
  std::unique_ptr<Slab> current_small_, current_medium_;  // that blocks are being cut from
  std::vector<std::unique_ptr<Slab>> slabs_;              // fully cut ones, and those of one large block each
  MemoryStats stats_{};
  DeviceFigures* figures_ = nullptr;
};

}  // namespace flagos::cpu
