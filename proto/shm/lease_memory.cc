// SPDX-License-Identifier: Apache-2.0
#include "proto/shm/lease_memory.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "proto/shm/futex.h"
#include "proto/shm/process_identity.h"
#include "proto/shm/slot_lock.h"

namespace flagos {
namespace {

constexpr uint64_t kPatience = 500'000'000;  // nanoseconds, for a claim of another session
constexpr int kTurns = 64;                   // before one sleeps between two looks

uint64_t Plus(uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; }

uint32_t SlotsUsed(const LeasePage& page) { return std::min(page.slots_used.load(), kLeaseSlots); }

// What all executors hold, with claims or without.
uint64_t Sum(const LeasePage& page, uint32_t device, bool with_claims) {
  uint64_t sum = 0;
  for (uint32_t slot = 0, end = SlotsUsed(page); slot < end; ++slot) {
    const LeaseHolding& holding = page.slots[slot].devices[device];
    const uint64_t claimed = holding.claimed.load();  // first: it moves to the other
    sum = Plus(sum, Plus(holding.charged.load(), with_claims ? claimed : 0));
  }
  return sum;
}

// REQUIRES the slot's lock.
bool OwnerIsGone(const LeaseSlot& slot) {
  return slot.session.load() == 0 || ProcessIsGone({slot.pid.load(), slot.pid_started.load()});
}

// REQUIRES the slot's lock. True where it held something.
bool Clear(LeaseSlot& slot) {
  bool held = false;
  for (LeaseHolding& holding : slot.devices) {
    held |= holding.claimed.exchange(0) != 0;
    held |= holding.charged.exchange(0) != 0;
  }
  slot.session.store(0);
  return held;
}

}  // namespace

std::string ReadableBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

std::string Describe(const LeaseMemory& memory) {
  if (memory.quota == 0) return {};
  std::string text =
      "its lease holds " + ReadableBytes(memory.used) + " of its quota of " + ReadableBytes(memory.quota) + " there";
  if (memory.largest_session == 0) return text;
  return text + ", session s" + std::to_string(memory.largest_session) +
         " most of it: " + ReadableBytes(memory.largest);
}

Result<NewLeasePage> CreateLeasePage() {
  auto fd = CreateRegion("flagos-lease", sizeof(LeasePage));
  if (!fd.ok()) return fd.error();
  auto mapping = Mapping::Map(fd.value().get(), Access::kReadWrite, sizeof(LeasePage));
  if (!mapping.ok()) return mapping.error();
  // A new memfd is zero, which is what all words but the head start with.
  LeasePage& page = LeasePageOf(mapping.value());
  page.version.store(kLeaseVersion);
  page.slot_count.store(kLeaseSlots);
  page.device_count.store(kMaxDevices);
  page.magic.store(kLeaseMagic);
  return NewLeasePage{std::move(fd).value(), std::move(mapping).value()};
}

Result<Mapping> MapLeasePage(int fd) {
  auto mapping = Mapping::Map(fd, Access::kReadWrite, sizeof(LeasePage));
  if (!mapping.ok()) return mapping.error();
  const LeasePage& page = LeasePageOf(mapping.value());
  if (page.magic.load() != kLeaseMagic || page.version.load() != kLeaseVersion ||
      page.slot_count.load() != kLeaseSlots || page.device_count.load() != kMaxDevices) {
    return MakeError(ErrorCode::kMalformed,
                     "a lease's memory page has another layout than this program's; install flagosd and "
                     "flagos-executor from one release");
  }
  return mapping;
}

LeaseMemory ReadLeaseMemory(const LeasePage& page, uint32_t device) {
  LeaseMemory memory;
  memory.quota = page.quota[device].load();
  for (uint32_t slot = 0, end = SlotsUsed(page); slot < end; ++slot) {
    const uint64_t charged = page.slots[slot].devices[device].charged.load();
    memory.used = Plus(memory.used, charged);
    if (charged <= memory.largest) continue;
    memory.largest = charged;
    memory.largest_session = page.slots[slot].session.load();
  }
  return memory;
}

uint64_t ReadLeaseCharge(const LeasePage& page, uint64_t session, uint32_t device) {
  for (uint32_t slot = 0, end = SlotsUsed(page); slot < end; ++slot) {
    if (page.slots[slot].session.load() == session) return page.slots[slot].devices[device].charged.load();
  }
  return 0;
}

bool ReapLeaseSlots(LeasePage& page, int fd) {
  bool reaped = false;
  for (uint32_t number = 0, end = SlotsUsed(page); number < end; ++number) {
    LeaseSlot& slot = page.slots[number];
    // One's own lock would be granted again, and then given back.
    if (slot.session.load() == 0 || slot.pid.load() == ::getpid() || !LockSlot(fd, number)) continue;
    if (OwnerIsGone(slot)) reaped |= Clear(slot);
    UnlockSlot(fd, number);
  }
  return reaped;
}

Result<std::unique_ptr<LeaseAccount>> LeaseAccount::Join(UniqueFd fd, uint64_t session, std::vector<uint32_t> devices) {
  auto mapping = MapLeasePage(fd.get());
  if (!mapping.ok()) return mapping.error();
  if (std::any_of(devices.begin(), devices.end(), [](uint32_t device) { return device >= kMaxDevices; })) {
    return MakeError(ErrorCode::kValue, "a session's device has a number beyond " + std::to_string(kMaxDevices - 1) +
                                            ", which no lease accounts for; choose others");
  }
  std::unique_ptr<LeaseAccount> account(
      new LeaseAccount(std::move(fd), std::move(mapping).value(), std::move(devices)));
  if (account->take_slot(session)) return account;
  return MakeError(ErrorCode::kUnavailable, "the lease has " + std::to_string(kLeaseSlots) +
                                                " sessions, and no room for another; end some, or open another lease");
}

bool LeaseAccount::take_slot(uint64_t session) {
  for (uint32_t number = 0; number < kLeaseSlots; ++number) {
    LeaseSlot& slot = page().slots[number];
    if ((slot.session.load() != 0 && slot.pid.load() == ::getpid()) || !LockSlot(fd_.get(), number)) continue;
    if (!OwnerIsGone(slot)) {
      UnlockSlot(fd_.get(), number);
      continue;
    }
    Clear(slot);
    const ProcessIdentity self = OwnIdentity();
    slot.pid.store(self.pid);
    slot.pid_started.store(self.started);
    slot.session.store(session);
    for (uint32_t used = page().slots_used.load(); used <= number;) {
      if (page().slots_used.compare_exchange_weak(used, number + 1)) break;
    }
    slot_ = number;
    return true;
  }
  return false;
}

LeaseAccount::~LeaseAccount() {
  if (slot_ == kLeaseSlots) return;
  Clear(page().slots[slot_]);
  UnlockSlot(fd_.get(), slot_);
}

bool LeaseAccount::yields(uint32_t device) const {
  for (uint32_t slot = 0; slot < slot_; ++slot) {
    if (page().slots[slot].devices[devices_[device]].claimed.load() != 0) return true;
  }
  return false;
}

bool LeaseAccount::charge(uint32_t device, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  LeaseHolding& own = holding(device);
  const uint32_t node = devices_[device];
  const uint64_t quota = page().quota[node].load();
  const uint64_t before = own.charged.load();
  bool reaped = false;
  uint64_t deadline = 0;
  for (int turn = 0; quota != 0; ++turn) {
    own.claimed.store(bytes);
    if (Sum(page(), node, true) <= quota) break;
    if (Plus(Sum(page(), node, false), bytes) > quota) {
      own.claimed.store(0);
      if (std::exchange(reaped, true) || !ReapLeaseSlots(page(), fd_.get())) return false;
      continue;
    }
    // Others ask as well, and some of them will not get it.
    if (yields(device)) own.claimed.store(0);
    if (deadline == 0) deadline = MonotonicNanoseconds() + kPatience;
    if (MonotonicNanoseconds() >= deadline) {
      own.claimed.store(0);
      if (std::exchange(reaped, true) || !ReapLeaseSlots(page(), fd_.get())) return false;
      deadline = 0;
    }
    if (turn < kTurns) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  own.charged.store(before + bytes);
  own.claimed.store(0);
  return true;
}

void LeaseAccount::uncharge(uint32_t device, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  LeaseHolding& own = holding(device);
  const uint64_t charged = own.charged.load();
  own.charged.store(charged - std::min(charged, bytes));
}

uint64_t LeaseAccount::claim_rest(uint32_t device) {
  const std::lock_guard lock(mutex_);
  LeaseHolding& own = holding(device);
  const uint32_t node = devices_[device];
  const uint64_t quota = page().quota[node].load();
  if (quota == 0) return UINT64_MAX;
  const uint64_t charged = own.charged.load();
  const uint64_t deadline = MonotonicNanoseconds() + kPatience;
  own.claimed.store(0);
  ReapLeaseSlots(page(), fd_.get());
  do {
    const uint64_t used = Sum(page(), node, false);
    const uint64_t rest = quota - std::min(quota, used);
    own.claimed.store(rest);
    if (Sum(page(), node, true) <= quota) return charged + rest;
    own.claimed.store(0);
    ::sched_yield();
  } while (MonotonicNanoseconds() < deadline);
  return charged;
}

void LeaseAccount::settle(uint32_t device, uint64_t held) {
  const std::lock_guard lock(mutex_);
  LeaseHolding& own = holding(device);
  own.charged.store(held);
  own.claimed.store(0);
}

uint64_t LeaseAccount::charged(uint32_t device) const { return holding(device).charged.load(); }

}  // namespace flagos
