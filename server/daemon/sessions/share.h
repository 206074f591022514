// SPDX-License-Identifier: Apache-2.0
// What leases get of the devices' time: their entries in the arbiter's page (proto/shm/arbiter_page.h), by which their
// executors share it out among themselves, whether flagosd runs or not.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/shm/arbiter.h"
#include "server/daemon/executors/spec.h"

namespace flagos::daemon {

// Loop thread only, as all here.
class SharePage {
 public:
  static absl::StatusOr<std::shared_ptr<SharePage>> Create();
  // The page that executors have kept through a restart of flagosd, with every entry that a living executor uses.
  // InvalidArgument where it is none of this version.
  static absl::StatusOr<std::shared_ptr<SharePage>> Adopt(UniqueFd fd);

  const Arbiter& arbiter() const { return arbiter_; }
  void set_mode(ComputeMode mode) { arbiter_.page().mode.store(static_cast<uint32_t>(mode)); }
  // For executors.
  int fd() const { return fd_.get(); }
  // An executor has ended: what is there of it is cleared. Others get on without.
  void reap() { ReapArbiterSlots(arbiter_.page(), fd_.get()); }

 private:
  friend class LeaseShare;
  SharePage(UniqueFd fd, Mapping mapping);

  const UniqueFd fd_;
  const Mapping mapping_;
  const Arbiter arbiter_;
};

// What an executor says of its session, bounded.
struct SessionShare {
  double throttled = 0;  // seconds that it waited for turns
};

// A lease's entry. Lives as long as the lease, and each of its sessions.
class LeaseShare {
 public:
  // Where all entries are taken the lease is one of several in an entry of usual terms.
  static std::shared_ptr<LeaseShare> Open(std::shared_ptr<SharePage> page, const ShareTerms& terms);
  // The entry that a lease has kept through a restart of flagosd, with its terms as they are there.
  static std::shared_ptr<LeaseShare> Adopt(std::shared_ptr<SharePage> page, uint32_t entry);
  ~LeaseShare();
  LeaseShare(const LeaseShare&) = delete;
  LeaseShare& operator=(const LeaseShare&) = delete;

  uint32_t entry() const { return entry_; }
  const ShareTerms& terms() const { return terms_; }
  SharePage& page() const { return *page_; }
  // Seconds of these devices' time that the lease's sessions took in turns.
  double used(const DeviceSet& devices) const;
  SessionShare session(uint64_t number) const;

 private:
  LeaseShare(std::shared_ptr<SharePage> page, uint32_t entry, const ShareTerms& terms)
      : page_(std::move(page)), entry_(entry), terms_(terms) {}

  const std::shared_ptr<SharePage> page_;
  const uint32_t entry_;
  const ShareTerms terms_;
};

}  // namespace flagos::daemon
