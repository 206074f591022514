// SPDX-License-Identifier: Apache-2.0
#include "proto/shm/arbiter.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "proto/shm/futex.h"
#include "proto/shm/process_identity.h"
#include "proto/shm/slot_lock.h"

namespace flagos {
namespace {

uint32_t SlotsUsed(const ArbiterPage& page) { return std::min(page.slots_used.load(), kArbiterSlots); }

void Raise(std::atomic<uint64_t>& word, uint64_t least) {
  uint64_t now = word.load();
  while (now < least && !word.compare_exchange_weak(now, least)) {
  }
}

// A heartbeat may be of a moment after `now` was read.
bool Within(uint64_t then, uint64_t span, uint64_t now) { return then + span > now; }

bool IsGone(const ArbiterSlot& slot) {
  return slot.session.load() == 0 || ProcessIsGone({slot.pid.load(), slot.pid_started.load()});
}

}  // namespace

Result<NewArbiterPage> CreateArbiterPage() {
  auto fd = CreateRegion("flagos-arbiter", sizeof(ArbiterPage));
  if (!fd.ok()) return fd.error();
  auto mapping = Mapping::Map(fd.value().get(), Access::kReadWrite, sizeof(ArbiterPage));
  if (!mapping.ok()) return mapping.error();
  auto& page = *reinterpret_cast<ArbiterPage*>(mapping.value().data());
  page.version.store(kArbiterVersion);
  page.lease_count.store(kArbiterLeases);
  page.slot_count.store(kArbiterSlots);
  page.device_count.store(kMaxDevices);
  Arbiter(page).set_terms(0, ShareTerms());
  page.magic.store(kArbiterMagic);
  return NewArbiterPage{std::move(fd).value(), std::move(mapping).value()};
}

Result<Mapping> MapArbiterPage(int fd) {
  auto mapping = Mapping::Map(fd, Access::kReadWrite, sizeof(ArbiterPage));
  if (!mapping.ok()) return mapping.error();
  const auto& page = *reinterpret_cast<const ArbiterPage*>(mapping.value().data());
  if (page.magic.load() != kArbiterMagic || page.version.load() != kArbiterVersion ||
      page.lease_count.load() != kArbiterLeases || page.slot_count.load() != kArbiterSlots ||
      page.device_count.load() != kMaxDevices) {
    return MakeError(ErrorCode::kMalformed,
                     "the arbiter's page has another layout than this program's; install flagosd and flagos-executor "
                     "from one release");
  }
  return mapping;
}

ComputeMode Arbiter::mode() const {
  return page_.mode.load(std::memory_order_relaxed) == static_cast<uint32_t>(ComputeMode::kWorkConserving)
             ? ComputeMode::kWorkConserving
             : ComputeMode::kStrict;
}

ShareTerms Arbiter::terms(uint32_t lease) const {
  const ArbiterLease& entry = page_.leases[lease % kArbiterLeases];
  ShareTerms terms;
  terms.weight = std::clamp(entry.weight.load(), 1u, kMaxWeight);
  terms.max_percent = std::clamp(entry.max_percent.load(), 1u, 100u);
  terms.share_class = static_cast<ShareClass>(std::min(entry.share_class.load(), kShareClasses - 1));
  return terms;
}

void Arbiter::set_terms(uint32_t lease, const ShareTerms& terms) const {
  ArbiterLease& entry = page_.leases[lease % kArbiterLeases];
  entry.weight.store(terms.weight);
  entry.max_percent.store(terms.max_percent);
  entry.share_class.store(static_cast<uint32_t>(terms.share_class));
}

void Arbiter::charge(uint32_t lease, uint32_t device, uint64_t nanoseconds, uint64_t now) const {
  const ShareTerms of = terms(lease);
  ArbiterUse& use = page_.leases[lease % kArbiterLeases].devices[device];
  nanoseconds = std::min(nanoseconds, kMostCharged);
  use.used.fetch_add(nanoseconds);
  use.virtual_ns.fetch_add(nanoseconds * kDefaultWeight / of.weight);
  if (of.max_percent == 100) return;
  const uint64_t before = now - std::min(now, nanoseconds);
  Raise(use.not_before, before);
  // Nobody is kept away for long, whatever stands in the page.
  const uint64_t next = use.not_before.load() + nanoseconds * 100 / of.max_percent;
  use.not_before.store(std::min(next, now + kMostCharged * 100));
}

void Arbiter::wake(uint32_t lease, uint32_t device) const {
  const ShareTerms of = terms(lease);
  const uint64_t at = page_.devices[device].virtual_now[static_cast<uint32_t>(of.share_class)].load();
  Raise(page_.leases[lease % kArbiterLeases].devices[device].virtual_ns, at - std::min(at, kCatchUp));
}

uint64_t Arbiter::over_maximum(uint32_t lease, uint32_t device, uint64_t now) const {
  if (terms(lease).max_percent == 100) return 0;
  const uint64_t until = page_.leases[lease % kArbiterLeases].devices[device].not_before.load();
  return until > now + kBurst ? until - now - kBurst : 0;
}

bool Arbiter::before(uint32_t a, uint32_t b, uint32_t device) const {
  const uint32_t first = page_.slots[a].lease.load() % kArbiterLeases;
  const uint32_t second = page_.slots[b].lease.load() % kArbiterLeases;
  const ShareClass of_first = terms(first).share_class, of_second = terms(second).share_class;
  if (of_first != of_second) return of_first > of_second;
  const uint64_t had_first = page_.leases[first].devices[device].virtual_ns.load();
  const uint64_t had_second = page_.leases[second].devices[device].virtual_ns.load();
  if (first != second && had_first != had_second) return had_first < had_second;
  return page_.slots[a].last_turn.load() < page_.slots[b].last_turn.load();
}

int Arbiter::next(uint32_t device, uint64_t now) const {
  const bool strict = mode() == ComputeMode::kStrict;
  int best = -1, best_over = -1;
  for (uint32_t number = 0, end = SlotsUsed(page_); number < end; ++number) {
    const ArbiterSlot& slot = page_.slots[number];
    if (slot.waits_for.load() != device + 1 || !Within(slot.heartbeat.load(), kLapse, now)) continue;
    const bool over = over_maximum(slot.lease.load(), device, now) != 0;
    int& chosen = over ? best_over : best;
    if (chosen < 0 || before(number, static_cast<uint32_t>(chosen), device)) chosen = static_cast<int>(number);
  }
  // Beyond its maximum a lease gets what nobody else wants, or nothing.
  return best >= 0 || strict ? best : best_over;
}

bool Arbiter::may_be_taken(uint64_t turn, uint32_t device, uint64_t now) const {
  if ((turn & kTurnHolder) == 0) return true;
  const ArbiterSlot& by = holder(turn);
  if (by.session.load() == 0) return true;
  const uint64_t granted = page_.devices[device].granted.load();
  if (!Within(std::max(granted, by.heartbeat.load()), kLapse, now)) return true;
  const uint64_t idle = by.idle_since.load();
  if (idle == 0) return false;
  const bool real_time = terms(by.lease.load()).share_class == ShareClass::kRealTime;
  if (!Within(idle, real_time ? kLingerRealTime : kLinger, now)) return true;
  const int waiter = next(device, now);
  return waiter >= 0 && !Within(granted, kQuantum, now) &&
         before(static_cast<uint32_t>(waiter), static_cast<uint32_t>((turn & kTurnHolder) - 1) % kArbiterSlots, device);
}

int Arbiter::pass(uint32_t device, uint64_t turn, uint64_t now) const {
  const int to = next(device, now);
  ArbiterDevice& on = page_.devices[device];
  if (to >= 0) {
    const ShareTerms of = terms(page_.slots[to].lease.load());
    const uint64_t virtual_ns = page_.leases[page_.slots[to].lease.load() % kArbiterLeases].devices[device].virtual_ns;
    on.granted.store(now);
    page_.slots[to].last_turn.store(now);
    Raise(on.virtual_now[static_cast<uint32_t>(of.share_class)], virtual_ns);
  }
  // Who waits besides says so again when it finds the turn taken.
  const uint64_t after = kTurnArbitrated | static_cast<uint64_t>(to + 1);
  if (!on.turn.compare_exchange_strong(turn, after)) return static_cast<int>(turn & kTurnHolder) - 1;
  if (to >= 0) {
    page_.slots[to].woken.fetch_add(1);
    FutexWake(page_.slots[to].woken, 1);
  }
  return to;
}

bool Arbiter::wanted(uint32_t device) const {
  for (uint32_t number = 0, end = SlotsUsed(page_); number < end; ++number) {
    const ArbiterSlot& slot = page_.slots[number];
    if (slot.session.load() != 0 && (slot.devices.load() >> device & 1) != 0 && !terms(slot.lease.load()).usual()) {
      return true;
    }
  }
  return false;
}

void Arbiter::settle(uint32_t device) const {
  std::atomic<uint64_t>& word = turn(device);
  uint64_t none = 0;
  if (!wanted(device)) word.store(0);
  // Somebody may have come in between.
  if (wanted(device)) word.compare_exchange_strong(none, kTurnArbitrated);
}

void ReapArbiterSlots(ArbiterPage& page, int fd) {
  const Arbiter arbiter(page);
  for (uint32_t number = 0, end = SlotsUsed(page); number < end; ++number) {
    ArbiterSlot& slot = page.slots[number];
    if (slot.session.load() == 0 || slot.pid.load() == ::getpid() || !LockSlot(fd, number)) continue;
    const bool gone = IsGone(slot);
    const uint64_t devices = slot.devices.load();
    if (gone) {
      slot.waits_for.store(0);
      slot.session.store(0);
    }
    UnlockSlot(fd, number);
    for (uint32_t device = 0; gone && device < kMaxDevices; ++device) {
      if ((devices >> device & 1) != 0) arbiter.settle(device);
    }
  }
}

ArbiterMember::ArbiterMember(UniqueFd fd, Mapping mapping, uint32_t lease, std::vector<uint32_t> devices)
    : fd_(std::move(fd)),
      mapping_(std::move(mapping)),
      arbiter_(*reinterpret_cast<ArbiterPage*>(mapping_.data())),
      lease_(lease),
      devices_(std::move(devices)) {}

Result<std::unique_ptr<ArbiterMember>> ArbiterMember::Join(UniqueFd fd, uint64_t session, uint32_t lease,
                                                           std::vector<uint32_t> devices) {
  auto mapping = MapArbiterPage(fd.get());
  if (!mapping.ok()) return mapping.error();
  const auto beyond = [](uint32_t device) { return device >= kMaxDevices; };
  if (lease >= kArbiterLeases || devices.empty() || std::any_of(devices.begin(), devices.end(), beyond)) {
    return MakeError(ErrorCode::kValue,
                     "flagosd sent a lease or a device that the arbiter has no place for; report it");
  }
  std::unique_ptr<ArbiterMember> member(
      new ArbiterMember(std::move(fd), std::move(mapping).value(), lease, std::move(devices)));
  if (member->take_slot(session)) return member;
  return MakeError(ErrorCode::kUnavailable, "flagosd has " + std::to_string(kArbiterSlots) +
                                                " executors, and its arbiter has no room for another; end some");
}

bool ArbiterMember::take_slot(uint64_t session) {
  ArbiterPage& page = arbiter_.page();
  for (uint32_t number = 0; number < kArbiterSlots; ++number) {
    ArbiterSlot& candidate = page.slots[number];
    if ((candidate.session.load() != 0 && candidate.pid.load() == ::getpid()) || !LockSlot(fd_.get(), number)) continue;
    if (!IsGone(candidate)) {
      UnlockSlot(fd_.get(), number);
      continue;
    }
    slot_ = number;
    const ProcessIdentity self = OwnIdentity();
    candidate.pid.store(self.pid);
    candidate.pid_started.store(self.started);
    candidate.lease.store(lease_);
    candidate.waits_for.store(0);
    candidate.idle_since.store(0);
    candidate.throttled.store(0);
    uint64_t mask = 0;
    for (const uint32_t device : devices_) mask |= uint64_t{1} << device;
    candidate.devices.store(mask);
    candidate.session.store(session);
    for (uint32_t used = page.slots_used.load(); used <= number;) {
      if (page.slots_used.compare_exchange_weak(used, number + 1)) break;
    }
    for (const uint32_t device : devices_) {
      // A turn that the slot's last owner took with it.
      uint64_t turn = arbiter_.turn(device).load();
      if ((turn & kTurnHolder) == number + 1) arbiter_.turn(device).compare_exchange_strong(turn, kTurnArbitrated);
      arbiter_.settle(device);
    }
    return true;
  }
  return false;
}

ArbiterMember::~ArbiterMember() {
  if (slot_ == kArbiterSlots) return;
  slot().waits_for.store(0);
  slot().session.store(0);
  for (const uint32_t device : devices_) {
    const uint64_t turn = arbiter_.turn(device).load();
    if ((turn & kTurnHolder) == slot_ + 1) arbiter_.pass(device, turn, MonotonicNanoseconds());
    arbiter_.settle(device);
  }
  UnlockSlot(fd_.get(), slot_);
}

}  // namespace flagos
