// SPDX-License-Identifier: Apache-2.0
#include "server/executor/regions.h"

#include <bit>
#include <string>
#include <utility>

namespace flagos::executor {

Result<SessionRegions> SessionRegions::Map(int ring, int executor, int arena, uint64_t ring_bytes,
                                           uint64_t arena_bytes) {
  if (!std::has_single_bit(ring_bytes) || ring_bytes < kMinRingBytes || ring_bytes > kMaxRingBytes) {
    return MakeError(ErrorCode::kMalformed, "a ring of " + std::to_string(ring_bytes) +
                                                " bytes was assigned, but it must be a power of two from " +
                                                std::to_string(kMinRingBytes) + " to " + std::to_string(kMaxRingBytes) +
                                                "; correct the ring size in flagosd's configuration");
  }
  SessionRegions regions;
  auto mapping = Mapping::Map(ring, Access::kReadOnly, RingRegionBytes(ring_bytes));
  if (!mapping.ok()) return mapping.error();
  regions.ring_ = std::move(mapping).value();
  mapping = Mapping::Map(executor, Access::kReadWrite, kExecutorRegionBytes);
  if (!mapping.ok()) return mapping.error();
  regions.executor_ = std::move(mapping).value();
  mapping = Mapping::Map(arena, Access::kReadWrite, arena_bytes);
  if (!mapping.ok()) return mapping.error();
  regions.arena_ = std::move(mapping).value();
  regions.ring_bytes_ = ring_bytes;
  regions.arena_bytes_ = arena_bytes;
  return regions;
}

}  // namespace flagos::executor
