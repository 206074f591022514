// SPDX-License-Identifier: Apache-2.0
// A lease's memory: what it may hold of each device, and the page in which its executors account for what they hold
// (proto/shm/lease_page.h). They enforce it, whether flagosd runs or not.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/shm/lease_memory.h"
#include "proto/wire/attach.h"
#include "server/daemon/config/memory_limit.h"
#include "server/daemon/executors/spec.h"

namespace flagos::daemon {

// Loop thread only. Lives as long as the lease, and each of its sessions.
class LeaseMemoryPage {
 public:
  static absl::StatusOr<std::shared_ptr<LeaseMemoryPage>> Create(const MemoryLimit& limit);
  // The page that an executor has kept through a restart of flagosd; limit() has to be called for its devices again,
  // for what stands in it an executor may have written. InvalidArgument where it is none of this version.
  static absl::StatusOr<std::shared_ptr<LeaseMemoryPage>> Adopt(UniqueFd fd, const MemoryLimit& limit);

  // Sets the limit of these devices, by number on the node, whose records an executor gave. Before that executor takes
  // the session.
  void limit(const DeviceSet& devices, const std::vector<DeviceRecord>& records);
  const MemoryLimit& limit() const { return limit_; }
  // For the executor.
  int fd() const { return fd_.get(); }

  // What the executors say, clamped to what can be. `device` is a number on the node.
  LeaseMemory read(uint32_t device) const;
  uint64_t used(uint64_t session, uint32_t device) const;
  uint64_t quota(uint32_t device) const { return device < quota_.size() ? quota_[device] : 0; }
  // An executor has ended: what it held is the lease's again. Others find that out by themselves, once they need it.
  void reap() { ReapLeaseSlots(LeasePageOf(mapping_), fd_.get()); }

 private:
  LeaseMemoryPage(const MemoryLimit& limit, NewLeasePage page)
      : limit_(limit), fd_(std::move(page.fd)), mapping_(std::move(page.mapping)) {}

  const MemoryLimit limit_;
  const UniqueFd fd_;
  const Mapping mapping_;
  std::array<uint64_t, kMaxDevices> quota_{};  // as set: executors could have changed the page
};

}  // namespace flagos::daemon
