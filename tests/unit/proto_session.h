// SPDX-License-Identifier: Apache-2.0
// The shared regions of a session, for tests of both ends.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <utility>

#include "proto/shm/layout.h"
#include "proto/shm/memfd.h"
#include "proto/wire/records.h"

namespace flagos::testing {

// One process's mapping of a ring region and of an executor region.
struct View {
  Mapping ring_region, executor_region;

  ClientPage* client() const { return reinterpret_cast<ClientPage*>(ring_region.data()); }
  std::span<std::byte> ring() const { return {ring_region.data() + kPage, ring_region.size() - kPage}; }
  ExecutorPage* executor() const { return reinterpret_cast<ExecutorPage*>(executor_region.data()); }
  std::span<std::byte> replies() const { return {executor_region.data(), executor_region.size()}; }
};

// Fresh regions. A child of fork() has the descriptors but no mapping (MADV_DONTFORK), and makes its own View.
struct Regions {
  UniqueFd ring_fd, executor_fd;

  explicit Regions(uint64_t ring_bytes = kMinRingBytes) {
    auto ring = CreateRegion("test-ring", RingRegionBytes(ring_bytes));
    auto executor = CreateRegion("test-executor", kExecutorRegionBytes);
    EXPECT_TRUE(ring.ok() && executor.ok());
    ring_fd = std::move(ring).value();
    executor_fd = std::move(executor).value();
  }

  View map() const {
    auto ring = Mapping::Map(ring_fd.get(), Access::kReadWrite, kPage);
    auto executor = Mapping::Map(executor_fd.get(), Access::kReadWrite, kExecutorRegionBytes);
    EXPECT_TRUE(ring.ok() && executor.ok());
    return {std::move(ring).value(), std::move(executor).value()};
  }
};

inline RecordHeader Header(RecordKind kind, uint32_t subject = 0, uint8_t flags = 0, uint16_t stream = 0) {
  RecordHeader header{};
  header.kind = static_cast<uint16_t>(kind);
  header.subject = subject;
  header.flags = flags;
  header.stream = stream;
  return header;
}

inline const std::function<bool()> kAlive = [] { return true; };
inline const std::function<bool()> kGone = [] { return false; };

}  // namespace flagos::testing
