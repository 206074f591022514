// SPDX-License-Identifier: Apache-2.0
// The signatures that the executor knows, found by their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/forward/result_handles.h"
#include "proto/wire/signature.h"

namespace flagos::client {

// A 64-bit digest that reads sixteen bytes at a time. Not for what an enemy may choose.
uint64_t HashSignature(std::span<const std::byte> bytes);

// An outcome as calls use it.
struct KnownOutcome {
  explicit KnownOutcome(Outcome of);
  const Outcome outcome;
  const std::vector<StorageSpec> storages;  // that a call makes, in the order of their handles
};

// Bounded: the oldest signatures go first, a sixteenth of them at a time. Not thread safe: the session's lock guards
// it.
class SignatureTable {
 public:
  struct Entry {
    uint64_t hash = 0;
    uint64_t last_use = 0;  // 0: the number is free
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
    std::shared_ptr<const KnownOutcome> outcome;  // null: only a synchronous call can tell
  };

  // REQUIRES a power of two, at least 16.
  explicit SignatureTable(uint32_t capacity);

  // The number of the signature, or kNone. Counts as a use.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t find(uint64_t hash, std::span<const std::byte> bytes);
  bool full() const { return live_ == capacity_; }
  // Forgets the signatures that were not used for longest and returns their numbers, which must be told to the
  // executor.
  std::vector<uint32_t> evict();
  // A number for a new signature. REQUIRES !full() and that find() does not know it.
  uint32_t insert(uint64_t hash, std::span<const std::byte> bytes);
  Entry& operator[](uint32_t number) { return entries_[number]; }
  uint32_t size() const { return live_; }

 private:
  struct Slot {
    uint32_t hash = 0;  // upper half
    uint32_t number = kNone;
  };
  void place(uint64_t hash, uint32_t number);

  const uint32_t capacity_;
  uint32_t live_ = 0;
  uint64_t uses_ = 0;
  std::vector<Entry> entries_;  // by number
  std::vector<uint32_t> free_;  // numbers below entries_.size(), to be used again from the back
  std::vector<Slot> slots_;     // open addressing, at most half full
};

}  // namespace flagos::client
