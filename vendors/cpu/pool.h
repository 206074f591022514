// SPDX-License-Identifier: Apache-2.0
// A device's memory: segments from the kernel, cut into blocks, which are kept for reuse when they are freed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "proto/shm/layout.h"
#include "proto/shm/lease_memory.h"
#include "proto/wire/records.h"
#include "vendors/cpu/segment.h"
#include "vendors/cpu/size_class.h"

namespace flagos::cpu {

class DevicePool;

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
  explicit DevicePool(uint64_t capacity) : capacity_(capacity) {}
  // REQUIRES that no block is live.
  ~DevicePool() { trim(); }

  // Memory of at least `bytes` bytes, aligned to kAlignment, with old contents; null where the device, the lease or
  // the machine has no more, and giving back what is cached did not help. REQUIRES bytes > 0.
  Block* allocate(uint64_t bytes);
  // `data` of a block that allocate() gave.
  static void Release(std::byte* data);

  // Counts memory that lies elsewhere as the device's own; false where it, or the lease, has no more room.
  bool count(uint64_t bytes);
  void uncount(uint64_t bytes);

  // Charges every segment to this account from now on, as its `device`, those that there are at once: false where the
  // lease has no room for them. null: charges nothing any more.
  bool charge_to(LeaseAccount* account, uint32_t device);
  // What the lease holds of this device; without a limit where nothing is charged.
  LeaseMemory lease() const;

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
  bool has_room(uint64_t bytes) const;
  // Charges what is about to be taken from the kernel, for which it may have to give back what is cached.
  bool charge(uint64_t bytes);
  void uncharge(uint64_t bytes);
  void trim_locked();
  void report();

  void release(Block* block);

  const uint64_t capacity_;
  mutable std::mutex mutex_;
  // All below GUARDED_BY(mutex_).
  std::array<Block*, kSizeClasses> free_{};
  std::multimap<uint64_t, Block*> free_large_;            // by size
  std::unique_ptr<Slab> current_small_, current_medium_;  // that blocks are being cut from
  std::vector<std::unique_ptr<Slab>> slabs_;              // fully cut ones, and those of one large block each
  MemoryStats stats_{};
  DeviceFigures* figures_ = nullptr;
  LeaseAccount* account_ = nullptr;
  uint32_t account_device_ = 0;
};

}  // namespace flagos::cpu
