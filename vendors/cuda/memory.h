// SPDX-License-Identifier: Apache-2.0
// The devices' memory: PyTorch's caching allocator, its figures, and the session's limit. Thread safe, as that is.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "proto/wire/records.h"
#include "vendors/cuda/lease_limit.h"
#include "vendors/interface/vendor.h"

namespace flagos::cuda {

class Memory {
 public:
  // May throw.
  Memory(uint8_t devices, vendor::Host& host);

  MemoryStats stats(uint8_t device) const;
  void reset_peaks(uint8_t device);
  void empty_cache(uint8_t device);
  // Brings the session's figures of the device, and what it is charged for it, up to date.
  void publish(uint8_t device);
  // The same at most a hundred times a second: it takes the allocator's lock. For the dispatch thread.
  void publish_now_and_then(uint8_t device);
  // For an error's text: what the lease holds of the device; empty where it has no limit.
  std::string lease_text(uint8_t device) const;

 private:
  vendor::Host& host_;
  LeaseLimit* const limit_;                        // null: nobody counts
  std::array<uint64_t, kMaxDevices> published_{};  // when, CLOCK_MONOTONIC in nanoseconds
};

}  // namespace flagos::cuda
