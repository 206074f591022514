// SPDX-License-Identifier: Apache-2.0
#include "proto/shm/ring.h"

#include <climits>
#include <cstring>
#include <thread>
#include <utility>

#include "proto/shm/blocked.h"
#include "proto/shm/futex.h"

namespace flagos {
namespace {

constexpr uint64_t kTailBatch = 16384;  // bytes consumed before the credits are returned

constexpr size_t kPrefetched = 256;  // bytes of the next record

// Eight bytes of the ring, read once whatever the optimiser thinks: the client may be rewriting them.
uint64_t LoadWord(const std::byte* at) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_RELAXED);
}

// The header at `at`, or the half of it that a pad of eight bytes has.
RecordHeader LoadHeader(const std::byte* at, uint64_t until_end) {
  const uint64_t words[2] = {LoadWord(at), until_end < sizeof(RecordHeader) ? 0 : LoadWord(at + 8)};
  RecordHeader header;
  static_assert(sizeof words == sizeof header);
  std::memcpy(&header, words, sizeof header);
  return header;
}

}  // namespace

void ProducerLock::lock_slow() {
  for (int turn = 0; turn < 100; ++turn) {
    uint32_t expected = 0;
    if (word_.compare_exchange_weak(expected, 1, std::memory_order_acquire)) return;
    CpuRelax();
  }
  while (word_.exchange(2, std::memory_order_acquire) != 0) word_.wait(2, std::memory_order_relaxed);
}

RingProducer::RingProducer(ClientPage* client, std::span<std::byte> ring, const ExecutorPage* executor,
                           std::function<bool()> peer_alive)
    : client_(client),
      ring_(ring),
      executor_(executor),
      peer_alive_(std::move(peer_alive)),
      head_(client->head.load(std::memory_order_relaxed)),
      cached_tail_(executor->tail.load(std::memory_order_acquire)) {}

bool RingProducer::wait_for_room(uint64_t bytes) {
  const auto room = [&] {
    cached_tail_ = executor_->tail.load(std::memory_order_seq_cst);
    return head_ + bytes - cached_tail_ <= ring_.size();
  };
  if (room()) return true;
  const BlockedMark mark(client_, BlockReason::kRingFull);
  for (;;) {
    if (SpinUntil(room, SpinNanoseconds())) return true;
    // Counted before the last look at `tail`, as the consumer moves `tail` before it looks at the count: one of the two
    // sees the other.
    client_->sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!room()) FutexWait(executor_->tail, cached_tail_, kLivenessPoll);
    client_->sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (room()) return true;
    if (!peer_alive_()) return false;
  }
}

std::byte* RingProducer::reserve(size_t payload, ErrorCode& error) {
  if (payload > max_payload()) {
    error = ErrorCode::kOutOfRange;
    return nullptr;
  }
  const uint64_t size = sizeof(RecordHeader) + AlignUp8(payload);
  const uint64_t position = head_ & (ring_.size() - 1);
  const uint64_t until_end = ring_.size() - position;
  const uint64_t pad = size > until_end ? until_end : 0;
  if (head_ + pad + size - cached_tail_ > ring_.size() && !wait_for_room(pad + size)) {
    error = ErrorCode::kDeviceLost;
    return nullptr;
  }
  if (pad != 0) {
    // Records are multiples of eight, so what is left at the end holds at least the first half of a header.
    RecordHeader header{};
    header.size = static_cast<uint32_t>(pad);
    header.kind = static_cast<uint16_t>(RecordKind::kPad);
    std::memcpy(ring_.data() + position, &header, pad < sizeof header ? pad : sizeof header);
    head_ += pad;
  }
  return ring_.data() + (head_ & (ring_.size() - 1)) + sizeof(RecordHeader);
}

uint64_t RingProducer::commit(RecordHeader header, size_t payload) {
  std::byte* const at = ring_.data() + (head_ & (ring_.size() - 1));
  const size_t padded = AlignUp8(payload);
  if (padded != payload) std::memset(at + sizeof header + payload, 0, padded - payload);
  header.size = static_cast<uint32_t>(sizeof header + padded);
  std::memcpy(at, &header, sizeof header);
  head_ += header.size;
  // Ordered before the load of `sleeping`, and that flag's store before the consumer's last look at `head`: one of the
  // two sees the other.
  client_->head.store(head_, std::memory_order_seq_cst);
  if (executor_->sleeping.load(std::memory_order_seq_cst) != 0) wake_consumer();
  return ++sequence_;
}

// The consumer says that it sleeps until it runs again, which takes longer than a hundred records. It consumed all
// before it slept, so one wake at this tail is enough: it does not sleep again before the tail has moved.
void RingProducer::wake_consumer() {
  const uint64_t tail = executor_->tail.load(std::memory_order_seq_cst);
  if (tail == woken_at_) return;
  woken_at_ = tail;
  FutexWake(client_->head, 1);
}

RingConsumer::RingConsumer(const ClientPage* client, std::span<const std::byte> ring, ExecutorPage* executor)
    : client_(client), ring_(ring), executor_(executor), copy_(1024) {}

void RingConsumer::publish_tail() {
  published_tail_ = tail_;
  executor_->tail.store(tail_, std::memory_order_seq_cst);
  if (client_->sleepers.load(std::memory_order_seq_cst) != 0) FutexWake(executor_->tail, 1);
}

RingConsumer::Status RingConsumer::try_read(Record& record) {
  for (;;) {
    if (tail_ == cached_head_) {
      cached_head_ = client_->head.load(std::memory_order_acquire);
      if (tail_ == cached_head_) {
        if (published_tail_ != tail_) publish_tail();
        return Status::kEmpty;
      }
      if (cached_head_ - tail_ > ring_.size() || cached_head_ % 8 != 0) return Status::kMalformed;
    }
    const uint64_t position = tail_ & (ring_.size() - 1);
    const uint64_t until_end = ring_.size() - position;
    const uint64_t available = cached_head_ - tail_;
    const RecordHeader header = LoadHeader(ring_.data() + position, until_end);
    if (header.size % 8 != 0 || header.size > until_end || header.size > available || header.size < 8) {
      return Status::kMalformed;
    }
    if (header.kind == static_cast<uint16_t>(RecordKind::kPad)) {
      if (header.size != until_end) return Status::kMalformed;
      tail_ += header.size;
      continue;
    }
    if (header.size < sizeof header || header.size > ring_.size() / 2) return Status::kMalformed;
    if (available >= header.size + kPrefetched) {
      // The next record is in the client's cache still, and is on its way while this one runs.
      const std::byte* const next = ring_.data() + ((position + header.size) & (ring_.size() - 1));
      for (size_t at = 0; at < kPrefetched; at += kCacheLine) __builtin_prefetch(next + at);
    }
    const size_t payload = header.size - sizeof header;
    if (payload > copy_.size() * 8) copy_.resize(payload / 8);
    std::memcpy(copy_.data(), ring_.data() + position + sizeof header, payload);
    tail_ += header.size;
    if (tail_ - published_tail_ >= kTailBatch || tail_ - published_tail_ >= ring_.size() / 4) publish_tail();
    record.header = header;
    record.payload = std::as_bytes(std::span(copy_)).first(payload);
    record.sequence = ++sequence_;
    return Status::kRecord;
  }
}

void RingConsumer::wait(uint64_t timeout_ns) {
  const auto ready = [&] {
    return client_->head.load(std::memory_order_acquire) != tail_ || woken_.load(std::memory_order_acquire);
  };
  if (!SpinUntil(ready, SpinNanoseconds())) {
    if (published_tail_ != tail_) publish_tail();  // a producer wakes once at each tail
    executor_->sleeping.store(1, std::memory_order_seq_cst);
    asleep_.store(true, std::memory_order_seq_cst);
    const uint64_t head = client_->head.load(std::memory_order_seq_cst);
    if (head == tail_ && !woken_.load(std::memory_order_seq_cst)) {
      FutexWait(client_->head, head, std::chrono::nanoseconds(timeout_ns));
    }
    asleep_.store(false, std::memory_order_relaxed);
    executor_->sleeping.store(0, std::memory_order_relaxed);
  }
  // What wake()'s caller did before is seen by ours from here on.
  woken_.exchange(false, std::memory_order_acq_rel);
}

void RingConsumer::wake() {
  woken_.store(true, std::memory_order_seq_cst);
  // The consumer sleeps on `head`, which is not ours to change, so it may fall asleep just after it looked at `woken_`:
  // call until it is up. All are called, for a client that sleeps on its own `head` must not take the call away.
  while (asleep_.load(std::memory_order_seq_cst) && woken_.load(std::memory_order_relaxed)) {
    FutexWake(client_->head, INT_MAX);
    std::this_thread::yield();
  }
}

}  // namespace flagos
