// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace flagos::cpu {
namespace {

constexpr uint64_t kLargestOfSmallSlab = uint64_t{128} << 10;
constexpr uint64_t kSmallSlab = uint64_t{2} << 20;
constexpr uint64_t kMediumSlab = uint64_t{16} << 20;
constexpr uint64_t kLargeStep = uint64_t{64} << 10;
constexpr uint64_t kHead = kAlignment;  // in front of a block's data: the block's address

// A free large block is reused for a request that it is not much too large for.
constexpr uint64_t MostFor(uint64_t bytes) { return bytes + bytes / 4 + (uint64_t{1} << 20); }

}  // namespace

Block* DevicePool::allocate(uint64_t bytes) {
  if (bytes > capacity_) return nullptr;
  const uint64_t counted = RoundUp(bytes, kAlignment);
  const std::lock_guard lock(mutex_);
  if (!has_room(counted)) return nullptr;
  Block* block = counted <= kLargestSmall ? take_small(SizeClass(counted)) : take_large(RoundUp(counted, kLargeStep));
  if (block == nullptr) return nullptr;
  block->counted = counted;
  ++block->slab->live;
  ++stats_.allocations;
  stats_.allocated_bytes += static_cast<int64_t>(counted);
  stats_.peak_allocated_bytes = std::max(stats_.peak_allocated_bytes, stats_.allocated_bytes);
  report();
  return block;
}

bool DevicePool::has_room(uint64_t bytes) const {
  return bytes <= capacity_ && static_cast<uint64_t>(stats_.allocated_bytes) <= capacity_ - bytes;
}

bool DevicePool::charge(uint64_t bytes) {
  if (account_ == nullptr || account_->charge(account_device_, bytes)) return true;
  if (stats_.reserved_bytes <= stats_.allocated_bytes) return false;
  ++stats_.retries;
  trim_locked();
  return account_->charge(account_device_, bytes);
}

void DevicePool::uncharge(uint64_t bytes) {
  if (account_ != nullptr) account_->uncharge(account_device_, bytes);
}

bool DevicePool::charge_to(LeaseAccount* account, uint32_t device) {
  const std::lock_guard lock(mutex_);
  trim_locked();
  if (account != nullptr && !account->charge(device, static_cast<uint64_t>(stats_.reserved_bytes))) return false;
  account_ = account;
  account_device_ = device;
  return true;
}

LeaseMemory DevicePool::lease() const {
  const std::lock_guard lock(mutex_);
  return account_ == nullptr ? LeaseMemory() : account_->view(account_device_);
}

bool DevicePool::count(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!has_room(bytes) || !charge(bytes)) return false;
  ++stats_.allocations;
  ++stats_.device_allocations;
  stats_.allocated_bytes += static_cast<int64_t>(bytes);
  stats_.reserved_bytes += static_cast<int64_t>(bytes);
  stats_.peak_allocated_bytes = std::max(stats_.peak_allocated_bytes, stats_.allocated_bytes);
  stats_.peak_reserved_bytes = std::max(stats_.peak_reserved_bytes, stats_.reserved_bytes);
  report();
  return true;
}

void DevicePool::uncount(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  ++stats_.frees;
  ++stats_.device_frees;
  stats_.allocated_bytes -= static_cast<int64_t>(bytes);
  stats_.reserved_bytes -= static_cast<int64_t>(bytes);
  uncharge(bytes);
  report();
}

void DevicePool::Release(std::byte* data) {
  Block* block = nullptr;
  std::memcpy(&block, data - kHead, sizeof(void*));
  block->pool->release(block);
}

void DevicePool::release(Block* block) {
  const std::lock_guard lock(mutex_);
  --block->slab->live;
  ++stats_.frees;
  stats_.allocated_bytes -= static_cast<int64_t>(block->counted);
  if (block->size <= kLargestSmall) {
    Block*& first = free_[SizeClass(block->size)];
    block->next = std::exchange(first, block);
  } else {
    free_large_.emplace(block->size, block);
  }
  report();
}

Block* DevicePool::take_small(size_t size_class) {
  if (Block* first = free_[size_class]) [[likely]] {
    free_[size_class] = first->next;
    return first;
  }
  const uint64_t bytes = ClassBytes(size_class);
  return bytes <= kLargestOfSmallSlab ? cut(current_small_, kSmallSlab, bytes)
                                      : cut(current_medium_, kMediumSlab, bytes);
}

Block* DevicePool::take_large(uint64_t bytes) {
  const auto found = free_large_.lower_bound(bytes);
  if (found != free_large_.end() && found->first <= MostFor(bytes)) {
    Block* block = found->second;
    free_large_.erase(found);
    return block;
  }
  std::unique_ptr<Slab> slab = new_slab(kHead + bytes);
  if (!slab) return nullptr;
  slabs_.push_back(std::move(slab));
  return new_block(*slabs_.back(), bytes);
}

Block* DevicePool::cut(std::unique_ptr<Slab>& from, uint64_t slab_bytes, uint64_t bytes) {
  if (!from || from->segment->size() - from->used < kHead + bytes) {
    std::unique_ptr<Slab> fresh = new_slab(slab_bytes);
    // Close to its quota a lease has room for less.
    if (!fresh) fresh = new_slab(kHead + bytes);
    if (!fresh) return nullptr;
    if (from) slabs_.push_back(std::move(from));
    from = std::move(fresh);
  }
  return new_block(*from, bytes);
}

Block* DevicePool::new_block(Slab& slab, uint64_t bytes) {
  std::byte* const head = slab.segment->data() + slab.used;
  slab.used += kHead + bytes;
  auto* block = new Block{head + kHead, bytes, 0, this, &slab};
  std::memcpy(head, &block, sizeof(void*));
  return block;
}

std::unique_ptr<Slab> DevicePool::new_slab(uint64_t bytes) {
  if (static_cast<uint64_t>(stats_.reserved_bytes) + bytes > capacity_ &&
      stats_.reserved_bytes > stats_.allocated_bytes) {
    ++stats_.retries;
    trim_locked();
  }
  // Charged before it is there, and given back after it is gone.
  const uint64_t size = Segment::SizeFor(bytes);
  if (!charge(size)) return nullptr;
  auto segment = Segment::Create(size);
  if (!segment) {
    ++stats_.retries;
    trim_locked();
    segment = Segment::Create(size);
  }
  if (!segment) {
    uncharge(size);
    return nullptr;
  }
  ++stats_.device_allocations;
  stats_.reserved_bytes += static_cast<int64_t>(segment->size());
  stats_.peak_reserved_bytes = std::max(stats_.peak_reserved_bytes, stats_.reserved_bytes);
  auto slab = std::make_unique<Slab>();
  slab->segment = std::move(segment);
  return slab;
}

void DevicePool::trim() {
  const std::lock_guard lock(mutex_);
  trim_locked();
  report();
}

void DevicePool::trim_locked() {
  for (Block*& first : free_) {
    for (Block** at = &first; *at != nullptr;) {
      Block* block = *at;
      if (block->slab->live != 0) {
        at = &block->next;
      } else {
        *at = block->next;
        delete block;
      }
    }
  }
  for (const auto& [size, block] : free_large_) delete block;
  free_large_.clear();
  uint64_t returned = 0;
  const auto unused = [&](const std::unique_ptr<Slab>& slab) {
    if (slab->live != 0) return false;
    ++stats_.device_frees;
    stats_.reserved_bytes -= static_cast<int64_t>(slab->segment->size());
    returned += slab->segment->size();
    return true;
  };
  std::erase_if(slabs_, unused);
  for (std::unique_ptr<Slab>* current : {&current_small_, &current_medium_}) {
    if (*current && unused(*current)) current->reset();
  }
  uncharge(returned);
}

MemoryStats DevicePool::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats = stats_;
  stats.total_bytes = static_cast<int64_t>(capacity_);
  stats.free_bytes = stats.total_bytes - stats.allocated_bytes;
  return stats;
}

void DevicePool::reset_peaks() {
  const std::lock_guard lock(mutex_);
  stats_.peak_allocated_bytes = stats_.allocated_bytes;
  stats_.peak_reserved_bytes = stats_.reserved_bytes;
  report();
}

void DevicePool::report_to(DeviceFigures* figures) {
  const std::lock_guard lock(mutex_);
  figures_ = figures;
  report();
}

void DevicePool::report() {
  if (figures_ == nullptr) return;
  figures_->allocated_bytes.store(stats_.allocated_bytes, std::memory_order_relaxed);
  figures_->reserved_bytes.store(stats_.reserved_bytes, std::memory_order_relaxed);
  figures_->peak_allocated_bytes.store(stats_.peak_allocated_bytes, std::memory_order_relaxed);
}

}  // namespace flagos::cpu
