// SPDX-License-Identifier: Apache-2.0
// The memory ledger of a lease, over its page (lease_page.h): charging for an executor, reading for everybody.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/shm/lease_page.h"
#include "proto/shm/memfd.h"
#include "proto/wire/error.h"

namespace flagos {

// What a lease may hold of a device, and holds.
struct LeaseMemory {
  uint64_t quota = 0;            // bytes; 0: no limit
  uint64_t used = 0;             // by all its sessions
  uint64_t largest = 0;          // by the session that holds most of it,
  uint64_t largest_session = 0;  // and its number; 0: none holds anything
};

// For an error's text: "its lease holds 3.00 GiB of its quota of 4.00 GiB there, session s12 most of it: 2.50 GiB";
// empty where there is no limit.
std::string Describe(const LeaseMemory& memory);
// "2.50 GiB".
std::string ReadableBytes(uint64_t bytes);

// A new page, with a valid head and no limit, and the mapping of it.
struct NewLeasePage {
  UniqueFd fd;
  Mapping mapping;
};
Result<NewLeasePage> CreateLeasePage();
// Maps a page that somebody else made. kMalformed where it is none of this version.
Result<Mapping> MapLeasePage(int fd);
inline LeasePage& LeasePageOf(const Mapping& mapping) { return *reinterpret_cast<LeasePage*>(mapping.data()); }

// `device` is a number on the node below kMaxDevices, here and in the two below.
LeaseMemory ReadLeaseMemory(const LeasePage& page, uint32_t device);
// What the session's executor has charged.
uint64_t ReadLeaseCharge(const LeasePage& page, uint64_t session, uint32_t device);
// Clears the slots of executors that are gone; true where there was one with a charge. `fd` is the page's, open for
// writing. For processes without an account of this page, or from the account itself.
bool ReapLeaseSlots(LeasePage& page, int fd);

// The account of one session, in the executor that serves it. The slot is the session's until the process ends, or the
// account does. Thread safe. REQUIRES that this process closes no other descriptor of the page meanwhile: its locks
// would be gone.
class LeaseAccount {
 public:
  // `devices` are the session's, by number on the node. kUnavailable where the lease has kLeaseSlots sessions already.
  static Result<std::unique_ptr<LeaseAccount>> Join(UniqueFd fd, uint64_t session, std::vector<uint32_t> devices);
  ~LeaseAccount();
  LeaseAccount(const LeaseAccount&) = delete;
  LeaseAccount& operator=(const LeaseAccount&) = delete;

  // Devices below are numbered as the session does.

  // Charges `bytes` that are about to be taken from the device: true, or false where the lease's quota has no room for
  // them. May wait for a claim of another session, 500 ms at most.
  bool charge(uint32_t device, uint64_t bytes);
  // Gives back what has been returned to the device.
  void uncharge(uint32_t device, uint64_t bytes);

  // For an allocator that does not say how much it is about to take. Claims all that is left of the quota, so that no
  // other session gets any, and returns what this session may hold in all; ~0 where there is no limit. settle() has to
  // follow soon.
  uint64_t claim_rest(uint32_t device);
  // Charges exactly `held` bytes and ends the claim. REQUIRES held to be at most what claim_rest() said, if a claim was
  // made, or what is charged.
  void settle(uint32_t device, uint64_t held);

  uint64_t charged(uint32_t device) const;
  LeaseMemory view(uint32_t device) const { return ReadLeaseMemory(page(), devices_[device]); }
  int fd() const { return fd_.get(); }

 private:
  LeaseAccount(UniqueFd fd, Mapping mapping, std::vector<uint32_t> devices)
      : fd_(std::move(fd)), mapping_(std::move(mapping)), devices_(std::move(devices)) {}
  LeasePage& page() const { return LeasePageOf(mapping_); }
  LeaseHolding& holding(uint32_t device) const { return page().slots[slot_].devices[devices_[device]]; }
  bool take_slot(uint64_t session);
  // Whether a session in a slot before this one asks, too: it has the right of way.
  bool yields(uint32_t device) const;

  const UniqueFd fd_;
  const Mapping mapping_;
  const std::vector<uint32_t> devices_;  // constant after Join()
  uint32_t slot_ = kLeaseSlots;          // constant after Join(); kLeaseSlots: none
  mutable std::mutex mutex_;             // held by whoever writes into the slot
};

}  // namespace flagos
