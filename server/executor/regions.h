// SPDX-License-Identifier: Apache-2.0
// A session's shared memory as its executor sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/shm/layout.h"
#include "proto/shm/memfd.h"
#include "proto/wire/error.h"

namespace flagos::executor {

// Owns the three mappings. What client() and ring() point to belongs to the client and may change at any time; arena()
// too. Valid until destruction; move only.
class SessionRegions {
 public:
  // Descriptors are only borrowed. `ring_bytes` and `arena_bytes` are what the descriptors must at least hold.
  static Result<SessionRegions> Map(int ring, int executor, int arena, uint64_t ring_bytes, uint64_t arena_bytes);

  const ClientPage* client() const { return reinterpret_cast<const ClientPage*>(ring_.data()); }
  std::span<const std::byte> ring() const { return {ring_.data() + kPage, ring_bytes_}; }
  ExecutorPage* page() const { return reinterpret_cast<ExecutorPage*>(executor_.data()); }
  // ExecutorPage and the reply slots.
  std::span<std::byte> executor() const { return {executor_.data(), kExecutorRegionBytes}; }
  std::span<std::byte> arena() const { return {arena_.data(), arena_bytes_}; }

 private:
  Mapping ring_;
  Mapping executor_;
  Mapping arena_;
  size_t ring_bytes_ = 0;
  size_t arena_bytes_ = 0;
};

}  // namespace flagos::executor
