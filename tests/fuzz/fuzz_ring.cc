// SPDX-License-Identifier: Apache-2.0
// A consumer on a ring that its client filled with anything. The input is the ring's head, then its bytes, with the
// rest of the ring repeating them.
#include <cstring>
#include <memory>

#include "proto/shm/ring.h"
#include "tests/fuzz/check.h"

namespace {

constexpr size_t kRing = flagos::kMinRingBytes;

struct Memory {
  flagos::ClientPage client;
  flagos::ExecutorPage executor;
  alignas(flagos::kPage) std::byte ring[kRing];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t head = 0;
  if (size < sizeof head + 8) return 0;
  static const auto memory = std::make_unique<Memory>();
  std::memcpy(&head, data, sizeof head);
  if (data[7] != 0xff) head %= 4 * kRing;  // mostly one that could be
  data += sizeof head;
  size -= sizeof head;
  for (size_t at = 0; at < kRing; at += size)
    std::memcpy(memory->ring + at, data, size < kRing - at ? size : kRing - at);
  memory->client.head = head;
  memory->executor.tail = 0;

  flagos::RingConsumer consumer(&memory->client, memory->ring, &memory->executor);
  flagos::Record record;
  uint64_t sequence = 0;
  // Each record takes sixteen bytes at least, so this ends.
  while (consumer.try_read(record) == flagos::RingConsumer::Status::kRecord) {
    FUZZ_CHECK(record.sequence == ++sequence && sequence <= kRing / sizeof(flagos::RecordHeader));
    FUZZ_CHECK(record.payload.size() == record.header.size - sizeof(flagos::RecordHeader));
    FUZZ_CHECK(record.payload.size() <= kRing / 2 && record.payload.size() % 8 == 0);
    FUZZ_CHECK(record.payload.empty() || record.payload.data() < memory->ring ||
               record.payload.data() >= memory->ring + kRing);
    // Every byte of it is the consumer's own.
    volatile std::byte sum{};
    for (const std::byte byte : record.payload) sum = sum ^ byte;
  }
  FUZZ_CHECK(memory->executor.tail <= head);
  return 0;
}
