// SPDX-License-Identifier: Apache-2.0
#include "client/arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "proto/shm/layout.h"

namespace flagos::client {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPunchBytes = size_t{4} << 20;  // smaller free blocks keep their pages: they are soon used again
constexpr size_t kNowhere = SIZE_MAX;

constexpr size_t RoundUp(size_t value, size_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

}  // namespace

Arena::Arena(std::span<std::byte> bytes, IsComplete is_complete, const std::atomic<uint32_t>* in_place)
    : bytes_(bytes), is_complete_(std::move(is_complete)), in_place_(in_place) {
  free_by_offset_.emplace(0, bytes.size());
  free_by_size_.emplace(bytes.size(), 0);
}

std::byte* Arena::allocate(size_t size) noexcept {
  if (size > bytes_.size()) return nullptr;
  const size_t alignment = size >= kPage ? kPage : kAlignment;
  const size_t rounded = RoundUp(std::max<size_t>(size, 1), kAlignment);
  const std::lock_guard lock(mutex_);
  collect_oldest();
  size_t offset = find(rounded, alignment);
  if (offset == kNowhere) {
    collect();
    offset = find(rounded, alignment);
  }
  if (offset == kNowhere) return nullptr;
  live_.emplace(offset, Block{rounded, {}});
  in_use_.fetch_add(rounded, std::memory_order_relaxed);
  return bytes_.data() + offset;
}

// Takes the smallest free range that holds an aligned block; what is before and behind the block stays free.
size_t Arena::find(size_t size, size_t alignment) {
  for (auto candidate = free_by_size_.lower_bound({size, 0}); candidate != free_by_size_.end(); ++candidate) {
    const auto [free_size, free_offset] = *candidate;
    const size_t offset = RoundUp(free_offset, alignment);
    if (offset + size > free_offset + free_size) continue;
    free_by_size_.erase(candidate);
    free_by_offset_.erase(free_offset);
    const auto keep = [&](size_t from, size_t to) {
      if (from == to) return;
      free_by_offset_.emplace(from, to - from);
      free_by_size_.emplace(to - from, from);
    };
    keep(free_offset, offset);
    keep(offset + size, free_offset + free_size);
    return offset;
  }
  return kNowhere;
}

void Arena::free(void* pointer) noexcept {
  if (!contains(pointer)) return;
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(pointer) - bytes_.data());
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(offset);
  if (found == live_.end()) return;
  Block block = std::move(found->second);
  live_.erase(found);
  if (done(block)) {
    release(offset, block.size);
  } else {
    held_.push_back({offset, std::move(block)});
  }
}

void Arena::hold_until(const void* pointer, uint16_t stream, uint64_t sequence) noexcept {
  if (!contains(pointer)) return;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(pointer) - bytes_.data());
  const std::lock_guard lock(mutex_);
  auto found = live_.upper_bound(offset);
  if (found == live_.begin()) return;
  --found;
  if (offset >= found->first + found->second.size) return;
  for (Use& use : found->second.uses) {
    if (use.stream != stream) continue;
    use.sequence = std::max(use.sequence, sequence);
    return;
  }
  found->second.uses.push_back({stream, sequence});
}

std::optional<ArenaRange> Arena::range_of(const void* pointer, size_t size) const noexcept {
  if (!contains(pointer)) return std::nullopt;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(pointer) - bytes_.data());
  const std::lock_guard lock(mutex_);
  auto found = live_.upper_bound(offset);
  if (found == live_.begin()) return std::nullopt;
  --found;
  const size_t end = found->first + found->second.size;
  if (offset >= end || size > end - offset) return std::nullopt;
  return ArenaRange{0, 0, offset, size};
}

std::optional<std::pair<uint16_t, uint64_t>> Arena::oldest_hold() const {
  const std::lock_guard lock(mutex_);
  for (const Held& held : held_) {
    for (const Use& use : held.block.uses) {
      if (!is_complete_(use.stream, use.sequence)) return std::pair(use.stream, use.sequence);
    }
  }
  return std::nullopt;
}

bool Arena::done(const Block& block) const {
  return std::all_of(block.uses.begin(), block.uses.end(),
                     [this](const Use& use) { return is_complete_(use.stream, use.sequence); });
}

// What was freed first is mostly done first: this costs the same however many blocks are held.
void Arena::collect_oldest() {
  while (!held_.empty() && done(held_.front().block)) {
    release(held_.front().offset, held_.front().block.size);
    held_.pop_front();
  }
}

void Arena::collect() {
  const auto kept = std::partition(held_.begin(), held_.end(), [this](const Held& held) { return !done(held.block); });
  for (auto held = kept; held != held_.end(); ++held) release(held->offset, held->block.size);
  held_.erase(kept, held_.end());
}

void Arena::release(size_t offset, size_t size) {
  in_use_.fetch_sub(size, std::memory_order_relaxed);
  // The block's whole pages, before it melts into its neighbours, whose pages are gone already if they were large.
  const bool in_place = in_place_ != nullptr && in_place_->load(std::memory_order_relaxed) != 0;
  if (size >= kPunchBytes && !in_place) {
    const size_t from = RoundUp(offset, kPage);
    const size_t to = (offset + size) & ~(kPage - 1);
    ::madvise(bytes_.data() + from, to - from, MADV_REMOVE);
  }
  const auto next = free_by_offset_.lower_bound(offset);
  if (next != free_by_offset_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      size += previous->second;
      free_by_size_.erase({previous->second, previous->first});
      free_by_offset_.erase(previous);
    }
  }
  if (next != free_by_offset_.end() && next->first == offset + size) {
    size += next->second;
    free_by_size_.erase({next->second, next->first});
    free_by_offset_.erase(next);
  }
  free_by_offset_.emplace(offset, size);
  free_by_size_.emplace(size, offset);
}

}  // namespace flagos::client
