// SPDX-License-Identifier: Apache-2.0
#include "proto/shm/replies.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "proto/shm/blocked.h"
#include "proto/shm/futex.h"

namespace flagos {
namespace {

template <class Bytes>
auto* SlotAt(Bytes region, uint32_t slot) {
  return region.data() + kReplyOffset + uint64_t{slot} * kReplyBytes;
}

}  // namespace

void WakeAll(std::span<const std::byte> region) {
  const auto& page = *reinterpret_cast<const ExecutorPage*>(region.data());
  FutexWake(page.tail, INT_MAX);
  for (const auto& word : page.completed) FutexWake(word, INT_MAX);
  for (uint32_t slot = 0; slot < kReplySlotCount; ++slot) {
    FutexWake(reinterpret_cast<const ReplySlot*>(SlotAt(region, slot))->sequence, INT_MAX);
  }
}

ReplyWriter::ReplyWriter(const ClientPage* client, std::span<std::byte> region) : client_(client), region_(region) {}

void ReplyWriter::reply(uint32_t slot, uint64_t sequence, std::span<const std::byte> bytes) {
  std::byte* const at = SlotAt(region_, slot);
  auto* const head = reinterpret_cast<ReplySlot*>(at);
  if (!bytes.empty()) std::memcpy(at + sizeof(ReplySlot), bytes.data(), bytes.size());
  head->size.store(static_cast<uint32_t>(bytes.size()), std::memory_order_relaxed);
  head->sequence.store(sequence, std::memory_order_seq_cst);
  wake(head->sequence);
}

void ReplyWriter::complete(uint32_t stream, uint64_t sequence) {
  auto& word = reinterpret_cast<ExecutorPage*>(region_.data())->completed[stream];
  // One writer at a time per stream, but a late one must not take the word back.
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (seen < sequence && !word.compare_exchange_weak(seen, sequence, std::memory_order_seq_cst)) {
  }
  wake(word);
}

void ReplyWriter::wake(const std::atomic<uint64_t>& word) {
  if (client_->sleepers.load(std::memory_order_seq_cst) != 0) FutexWake(word, INT_MAX);
}

ReplyReader::ReplyReader(ClientPage* client, std::span<const std::byte> region, std::function<bool()> peer_alive)
    : client_(client),
      region_(region),
      page_(reinterpret_cast<const ExecutorPage*>(region.data())),
      peer_alive_(std::move(peer_alive)) {
  for (uint32_t slot = kReplySlotCount; slot-- > 0;) free_.push_back(slot);
}

std::optional<uint32_t> ReplyReader::claim() {
  std::unique_lock lock(mutex_);
  if (free_.empty()) {
    const BlockedMark mark(client_, BlockReason::kReplySlots);
    while (free_.empty()) {
      released_.wait_for(lock, kLivenessPoll);
      if (free_.empty() && !peer_alive_()) return std::nullopt;
    }
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void ReplyReader::release(uint32_t slot) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }
  released_.notify_one();
}

bool ReplyReader::wait(uint32_t slot, uint64_t sequence, std::vector<std::byte>& bytes, uint64_t watch) {
  const std::byte* const at = SlotAt(region_, slot);
  const auto* const head = reinterpret_cast<const ReplySlot*>(at);
  if (!wait_word(head->sequence, sequence, watch)) return false;
  const uint32_t size = std::min(head->size.load(std::memory_order_relaxed), kMaxReplyBytes);
  bytes.assign(at + sizeof(ReplySlot), at + sizeof(ReplySlot) + size);
  return true;
}

bool ReplyReader::wait_complete(uint32_t stream, uint64_t sequence) {
  return wait_word(page_->completed[stream], sequence);
}

bool ReplyReader::is_complete(uint32_t stream, uint64_t sequence) const {
  return page_->completed[stream].load(std::memory_order_acquire) >= sequence;
}

bool ReplyReader::wait_word(const std::atomic<uint64_t>& word, uint64_t sequence, uint64_t watch) {
  const auto ready = [&] { return word.load(std::memory_order_acquire) >= sequence; };
  if (SpinUntil(ready, SpinNanoseconds()) || WatchUntil(ready, watch)) return true;
  bool alive = true;
  client_->sleepers.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint64_t seen = word.load(std::memory_order_seq_cst);
    if (seen >= sequence) break;
    FutexWait(word, seen, kLivenessPoll);
    // An answer that came before the end still counts.
    if (!ready() && !peer_alive_()) {
      alive = ready();
      break;
    }
  }
  client_->sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return alive;
}

}  // namespace flagos
