// SPDX-License-Identifier: Apache-2.0
// The books of a session's storages. Another vendor keeps the memory itself here.
#pragma once

#include <cstdint>
#include <vector>

#include "vendors/interface/vendor.h"

namespace flagos::null {

// For the dispatch thread alone.
class Ledger {
 public:
  Ledger(vendor::Host& host, uint32_t device_count);

  // The handle stands for `bytes` bytes on `device` from now on, whatever it stood for. kOutOfMemory, with the figures,
  // where the device or the lease has no room; the handle then stands for nothing. Handle 0 never has bytes.
  Error bind(uint32_t handle, uint64_t bytes, uint32_t device);
  // Nothing where the handle is not bound.
  void release(uint32_t handle);
  MemoryStats stats(uint32_t device) const;
  void reset_peak(uint32_t device);

 private:
  struct Storage {
    uint64_t bytes = 0;
    uint32_t device = 0;
    bool bound = false;
  };
  struct Device {
    DeviceFigures* figures;
    int64_t allocated = 0, peak = 0, total = 0, allocations = 0, frees = 0;
  };

  Error out_of_memory(uint64_t bytes, uint32_t device) const;

  LeaseAccount* const account_;  // may be null
  std::vector<Device> devices_;
  std::vector<Storage> storages_;  // by handle
};

}  // namespace flagos::null
