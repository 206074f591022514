// SPDX-License-Identifier: Apache-2.0
// Keeps PyTorch's caching allocator within what the session's lease may hold, together with the lease's other sessions.
//
// The allocator tells when its cache has nothing that fits, not how much it will ask the driver for. So the session
// claims all that is left of the quota for the moment, makes that the allocator's limit, and gives back the rest as
// soon as the new segment is there, or cannot be had. Before it fails over the limit the allocator gives cached
// segments back, as it does on a full device.
#pragma once

#include <cstdint>
#include <vector>

#include "vendors/interface/vendor.h"

namespace flagos::cuda {

// What the allocator holds of each device is charged. One for the process, for good: the allocator's hooks cannot be
// taken out. The hooks run under the allocator's lock, on whichever thread allocates.
class LeaseLimit {
 public:
  // Charges what is held already: throws Refusal where the lease has no room for it.
  static LeaseLimit& Install(LeaseAccount& account, uint8_t devices);

  // Charges what the allocator holds now. Any thread; takes the allocator's lock.
  void settle(uint8_t device);
  // The same, for who knows it.
  void settle(uint8_t device, uint64_t held) { account_.settle(device, held); }
  // Before the allocator asks the driver for memory of the current device.
  void before_segment();

  LeaseMemory view(uint8_t device) const { return account_.view(device); }

 private:
  LeaseLimit(LeaseAccount& account, uint8_t devices);

  LeaseAccount& account_;
  std::vector<uint64_t> totals_;  // by device; constant
};

}  // namespace flagos::cuda
