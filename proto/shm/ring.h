// SPDX-License-Identifier: Apache-2.0
// The command ring: many producers (threads of one client process), one consumer (the executor's dispatch thread).
//
// Bytes [tail, head) are records, each contiguous; kPad skips to the start where one would not fit before the end.
// Credits are the distance of tail and head: a producer without room waits, and says so in ClientPage. The consumer
// trusts nothing of the ring: it copies each record to memory of its own before it looks at it, once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "proto/shm/layout.h"
#include "proto/shm/memfd.h"
#include "proto/wire/error.h"
#include "proto/wire/records.h"

namespace flagos {

// A lock for a few dozen nanoseconds that sleeps when its holder was descheduled. Lives in private memory.
class ProducerLock {
 public:
  void lock() {
    uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) lock_slow();
  }
  bool try_lock() {
    uint32_t expected = 0;
    return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
  }
  void unlock() {
    if (word_.exchange(0, std::memory_order_release) == 2) word_.notify_one();
  }

 private:
  void lock_slow();
  std::atomic<uint32_t> word_{0};  // 0 free, 1 held, 2 held and waited for
};

// Not thread safe by itself: REQUIRES the session's ProducerLock from reserve() to commit(), which also makes the
// order of records that of the handles in them.
class RingProducer {
 public:
  // `peer_alive` is asked every 50 ms while the producer waits for credits; false ends the wait with kDeviceLost.
  RingProducer(ClientPage* client, std::span<std::byte> ring, const ExecutorPage* executor,
               std::function<bool()> peer_alive);

  // Room for a record: the place of its `payload` bytes, which the caller fills; commit() writes the header before
  // them. nullptr where the record can never fit (kOutOfRange) or the executor is gone (kDeviceLost); `error` then says
  // which. Blocks while the ring is full.
  std::byte* reserve(size_t payload, ErrorCode& error);
  // Publishes the reserved record and wakes a sleeping consumer. Returns its sequence number.
  uint64_t commit(RecordHeader header, size_t payload);

  size_t max_payload() const { return ring_.size() / 2 - sizeof(RecordHeader); }

 private:
  bool wait_for_room(uint64_t bytes);
  void wake_consumer();

  ClientPage* const client_;
  const std::span<std::byte> ring_;
  const ExecutorPage* const executor_;
  const std::function<bool()> peer_alive_;
  uint64_t head_;
  uint64_t cached_tail_;
  uint64_t woken_at_ = UINT64_MAX;  // the tail at which the consumer was woken last
  uint64_t sequence_ = 0;
};

// One record, in memory of the consumer's own, valid until the next read.
struct Record {
  RecordHeader header{};
  std::span<const std::byte> payload;
  uint64_t sequence = 0;
};

class RingConsumer {
 public:
  enum class Status { kRecord, kEmpty, kMalformed };

  RingConsumer(const ClientPage* client, std::span<const std::byte> ring, ExecutorPage* executor);

  // Never blocks. kMalformed: the bytes are no records (a size out of bounds, a head that jumped); the session must
  // end.
  Status try_read(Record& record);
  // Spins, then sleeps until there is something to read or `timeout_ns` passed. wake() ends it early.
  void wait(uint64_t timeout_ns);
  // From any thread.
  void wake();

 private:
  void publish_tail();

  const ClientPage* const client_;
  const std::span<const std::byte> ring_;
  ExecutorPage* const executor_;
  uint64_t tail_ = 0;
  uint64_t published_tail_ = 0;
  uint64_t cached_head_ = 0;
  uint64_t sequence_ = 0;
  std::atomic<bool> woken_{false};   // wake() was called
  std::atomic<bool> asleep_{false};  // in wait(), past its last look at woken_ or soon there
  std::vector<uint64_t> copy_;       // u64: payloads are aligned to 8
};

}  // namespace flagos
