// SPDX-License-Identifier: Apache-2.0
// The arithmetic of sharing a device's time by turns, over the arbiter's page (arbiter_page.h). Nothing here waits or
// reads a clock: `now` is CLOCK_MONOTONIC in nanoseconds. Waiting is server/executor/share.h.
//
// Of those who wait, the higher class goes first, and in a class the lease that has had least for its weight. A turn is
// taken from a holder that has nothing to do, that has had its quantum while another one is to go first, or that does
// not move.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/shm/arbiter_page.h"
#include "proto/shm/memfd.h"
#include "proto/wire/error.h"

namespace flagos {

inline constexpr uint32_t kDefaultWeight = 100;
inline constexpr uint32_t kMaxWeight = 10'000;

inline constexpr uint64_t kQuantum = 2'000'000;       // of a turn, while others wait
inline constexpr uint64_t kLapse = 20'000'000;        // a holder or waiter without a heartbeat for so long is not there
inline constexpr uint64_t kLinger = 200'000;          // a holder keeps its turn through a gap of this length,
inline constexpr uint64_t kLingerRealTime = 500'000;  // and of this
inline constexpr uint64_t kCatchUp = 20'000'000;      // of virtual time, for who was away
inline constexpr uint64_t kBurst = 5'000'000;         // that a lease may be ahead of its maximum
inline constexpr uint64_t kMostCharged = 200'000'000;  // at once: time for which a process was stopped is no use

// What a lease is to get.
struct ShareTerms {
  uint32_t weight = kDefaultWeight;
  uint32_t max_percent = 100;  // of the device's time
  ShareClass share_class = ShareClass::kNormal;

  bool operator==(const ShareTerms&) const = default;
  // As everybody's: where all are, nothing is arbitrated.
  bool usual() const { return *this == ShareTerms(); }
};

struct NewArbiterPage {
  UniqueFd fd;
  Mapping mapping;
};
Result<NewArbiterPage> CreateArbiterPage();
// kMalformed where it is no page of this version.
Result<Mapping> MapArbiterPage(int fd);

class Arbiter {
 public:
  explicit Arbiter(ArbiterPage& page) : page_(page) {}

  ArbiterPage& page() const { return page_; }
  std::atomic<uint64_t>& turn(uint32_t device) const { return page_.devices[device].turn; }
  ComputeMode mode() const;
  ShareTerms terms(uint32_t lease) const;
  void set_terms(uint32_t lease, const ShareTerms& terms) const;

  // Adds to what the lease has had of the device.
  void charge(uint32_t lease, uint32_t device, uint64_t nanoseconds, uint64_t now) const;
  // The lease begins to want the device again: what it missed meanwhile is gone, but for kCatchUp.
  void wake(uint32_t lease, uint32_t device) const;
  // Nanoseconds until the lease is below its maximum again; 0: it is.
  uint64_t over_maximum(uint32_t lease, uint32_t device, uint64_t now) const;

  // The slot that is to go next of those that wait for the device and are there; -1: there is none.
  int next(uint32_t device, uint64_t now) const;
  // Whether slot `a` is to go before slot `b`.
  bool before(uint32_t a, uint32_t b, uint32_t device) const;
  // Whether a waiter may take the turn from whoever has it.
  bool may_be_taken(uint64_t turn, uint32_t device, uint64_t now) const;
  // Passes the turn, if it still is `turn`, to the next waiter, or to nobody. Returns the slot that has it then, -1 for
  // nobody. Whoever got it is to be woken.
  int pass(uint32_t device, uint64_t turn, uint64_t now) const;
  // Whether any executor on the device asks for an unusual share.
  bool wanted(uint32_t device) const;
  // Ends arbitration of the device where nobody wants it any more.
  void settle(uint32_t device) const;

 private:
  const ArbiterSlot& holder(uint64_t turn) const { return page_.slots[((turn & kTurnHolder) - 1) % kArbiterSlots]; }

  ArbiterPage& page_;
};

// An executor's slot. Thread safe as far as it goes: it is constant.
class ArbiterMember {
 public:
  // `devices` by number on the node, below kMaxDevices. kUnavailable where there is no slot.
  static Result<std::unique_ptr<ArbiterMember>> Join(UniqueFd fd, uint64_t session, uint32_t lease,
                                                     std::vector<uint32_t> devices);
  ~ArbiterMember();
  ArbiterMember(const ArbiterMember&) = delete;
  ArbiterMember& operator=(const ArbiterMember&) = delete;

  const Arbiter& arbiter() const { return arbiter_; }
  uint32_t slot_number() const { return slot_; }
  ArbiterSlot& slot() const { return arbiter_.page().slots[slot_]; }
  uint32_t lease() const { return lease_; }
  uint32_t device_count() const { return static_cast<uint32_t>(devices_.size()); }
  // Of a device as the session counts them.
  uint32_t node_device(uint32_t device) const { return devices_[device % devices_.size()]; }
  int fd() const { return fd_.get(); }

 private:
  ArbiterMember(UniqueFd fd, Mapping mapping, uint32_t lease, std::vector<uint32_t> devices);
  bool take_slot(uint64_t session);

  const UniqueFd fd_;
  const Mapping mapping_;
  const Arbiter arbiter_;
  const uint32_t lease_;
  const std::vector<uint32_t> devices_;
  uint32_t slot_ = kArbiterSlots;
};

// Clears the slots of executors that are gone. `fd` is the page's.
void ReapArbiterSlots(ArbiterPage& page, int fd);

}  // namespace flagos
