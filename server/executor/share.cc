// SPDX-License-Identifier: Apache-2.0
#include "server/executor/share.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace flagos::executor {
namespace {

constexpr uint64_t kNothing = ~uint64_t{0};           // no turn looks like this
constexpr uint64_t kLook = 500'000;                   // nanoseconds between two looks of a holder
constexpr uint64_t kDepth = 2;                        // looks whose calls may be in flight
constexpr uint32_t kMostCalls = 1024;                 // between two looks
constexpr auto kNap = std::chrono::milliseconds(1);   // of who waits for a turn, at most
constexpr auto kBeat = std::chrono::milliseconds(5);  // between heartbeats of a holder that waits for its device

}  // namespace

Share::Share(std::unique_ptr<ArbiterMember> member) : member_(std::move(member)), arbiter_(member_->arbiter()) {
  for (uint32_t device = 0; device < kMaxDevices; ++device) {
    seats_[device].word = &arbiter_.turn(node(static_cast<uint8_t>(device)));
  }
}

void Share::stop() {
  stopped_.store(true);
  member_->slot().woken.fetch_add(1);
  FutexWake(member_->slot().woken, 1);
}

void Share::check(uint8_t device) {
  Seat& seat = seats_[device];
  const uint64_t turn = seat.word->load();
  if (turn != 0 && seat.held && (turn & kTurnHolder) == mine()) return look(device, turn);
  if (seat.held) {
    // Somebody took it, or nobody needs turns any more.
    if (!seat.idle) charge(device, MonotonicNanoseconds());
    resume(device);
    seat.held = false;
  }
  acquire(device);
}

void Share::acquire(uint8_t device) {
  Seat& seat = seats_[device];
  ArbiterSlot& slot = member_->slot();
  const uint32_t on = node(device);
  const uint64_t since = MonotonicNanoseconds();
  uint64_t now = since;
  uint64_t turn = seat.word->load();
  if (turn != 0) {
    arbiter_.wake(member_->lease(), on);
    slot.heartbeat.store(now);
    slot.waits_for.store(on + 1);
  }
  while (turn != 0 && (turn & kTurnHolder) != mine() && !stopped_.load(std::memory_order_relaxed)) {
    const uint64_t woken = slot.woken.load();
    std::chrono::nanoseconds nap = kNap;
    if (arbiter_.may_be_taken(turn, on, now)) {
      const int to = arbiter_.pass(on, turn, now);
      if (to >= 0) {
        turn = seat.word->load();
        if ((turn & kTurnHolder) == mine()) break;
      }
      if (const uint64_t over = arbiter_.over_maximum(member_->lease(), on, now); over != 0) {
        nap = std::min(nap, std::chrono::nanoseconds(over));
      }
    } else if ((turn & kTurnContended) == 0 && !seat.word->compare_exchange_strong(turn, turn | kTurnContended)) {
      continue;
    } else {
      // A holder that has fallen idle loses its turn after a while.
      const uint64_t idle = arbiter_.page().slots[((turn & kTurnHolder) - 1) % kArbiterSlots].idle_since.load();
      if (idle != 0)
        nap = std::chrono::nanoseconds(
            std::clamp<uint64_t>(idle + kLinger - std::min(idle + kLinger, now), 20'000, 1'000'000));
    }
    FutexWait(slot.woken, woken, nap);
    now = MonotonicNanoseconds();
    slot.heartbeat.store(now);
    turn = seat.word->load();
  }
  slot.waits_for.store(0);
  seat.held = (turn & kTurnHolder) == mine();
  seat.seen = turn;
  if (!seat.held) {
    // Nobody takes turns here, or the session is ending.
    seat.calls_left = stopped_.load(std::memory_order_relaxed) ? 1 : UINT32_MAX;
    return;
  }
  slot.throttled.fetch_add(now - since);
  holding_ = true;
  seat.taken = seat.charged = seat.looked_at = now;
  seat.calls_left = std::min(seat.calls_each, 16u);
}

void Share::look(uint8_t device, uint64_t turn) {
  Seat& seat = seats_[device];
  resume(device);
  uint64_t now = MonotonicNanoseconds();
  charge(device, now);
  member_->slot().heartbeat.store(now);
  if (now - seat.looked_at >= kLook / 2 || seat.calls_left == 0) {
    mark(device);
    wait_for_marks(device, kDepth);
    now = MonotonicNanoseconds();
    charge(device, now);
    // As many calls as take the time between two looks.
    const uint64_t took = std::max<uint64_t>(now - seat.looked_at, 1);
    const uint64_t fit = uint64_t{seat.calls_each} * kLook / took;
    seat.calls_each = static_cast<uint32_t>(std::clamp<uint64_t>(fit, 1, std::min(seat.calls_each * 2, kMostCalls)));
    seat.looked_at = now;
  }
  turn = seat.word->load();
  if ((turn & kTurnHolder) != mine()) return check(device);
  if (must_yield(device, turn, now)) return yield(device);
  if ((turn & kTurnContended) != 0 && arbiter_.next(node(device), now) < 0) {
    if (seat.word->compare_exchange_strong(turn, turn & ~kTurnContended)) turn &= ~kTurnContended;
    arbiter_.settle(node(device));
  }
  seat.seen = turn;
  seat.calls_left = seat.calls_each;
}

bool Share::must_yield(uint8_t device, uint64_t turn, uint64_t now) const {
  const uint32_t on = node(device);
  const bool over = arbiter_.over_maximum(member_->lease(), on, now) != 0;
  if (over && arbiter_.mode() == ComputeMode::kStrict) return true;
  if ((turn & kTurnContended) == 0) return false;
  const int waiter = arbiter_.next(on, now);
  if (waiter < 0) return false;
  const auto other = static_cast<uint32_t>(waiter);
  const uint32_t lease = arbiter_.page().slots[other].lease.load() % kArbiterLeases;
  // Where the maximum counts, it counts between two leases.
  const bool other_over = arbiter_.over_maximum(lease, on, now) != 0;
  if (over != other_over) return over;
  if (!arbiter_.before(other, member_->slot_number(), on)) return false;
  const bool higher = arbiter_.terms(lease).share_class > arbiter_.terms(member_->lease()).share_class;
  return higher || now - seats_[device].taken >= kQuantum;
}

void Share::charge(uint8_t device, uint64_t now) {
  Seat& seat = seats_[device];
  if (now <= seat.charged) return;
  arbiter_.charge(member_->lease(), node(device), now - seat.charged, now);
  seat.charged = now;
}

void Share::mark(uint8_t device) {
  Seat& seat = seats_[device];
  ++seat.marks;
  fence_(device, [&seat] {
    seat.passed.fetch_add(1);
    FutexWake(seat.passed, 1);
  });
}

void Share::wait_for_marks(uint8_t device, uint64_t left) {
  Seat& seat = seats_[device];
  for (;;) {
    const uint64_t passed = seat.passed.load();
    if (seat.marks - passed <= left || stopped_.load(std::memory_order_relaxed)) return;
    FutexWait(seat.passed, passed, kBeat);
    member_->slot().heartbeat.store(MonotonicNanoseconds());
  }
}

// What is in flight ends in the session's own turn.
void Share::yield(uint8_t device) {
  Seat& seat = seats_[device];
  mark(device);
  wait_for_marks(device, 0);
  const uint64_t now = MonotonicNanoseconds();
  charge(device, now);
  const uint64_t turn = seat.word->load();
  if ((turn & kTurnHolder) == mine()) arbiter_.pass(node(device), turn, now);
  seat.held = false;
  seat.looked_at = now;
  acquire(device);
}

// The turn stays for a while: the program is likely to go on.
void Share::give_way() {
  holding_ = false;
  const uint64_t now = MonotonicNanoseconds();
  uint64_t epoch = 0;
  {
    const std::lock_guard lock(mutex_);
    epoch = ++epoch_;
    fences_ = 0;
    for (uint32_t device = 0; device < member_->device_count(); ++device) fences_ += seats_[device].held ? 1 : 0;
  }
  for (uint32_t index = 0; index < member_->device_count(); ++index) {
    const auto device = static_cast<uint8_t>(index);
    Seat& seat = seats_[device];
    if (!seat.held) continue;
    charge(device, now);
    seat.idle = true;
    seat.seen = kNothing;
    seat.calls_left = UINT32_MAX;
    fence_(device, [this, epoch] { show_idle(epoch); });
  }
}

void Share::show_idle(uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_ || --fences_ != 0) return;
  const uint64_t now = MonotonicNanoseconds();
  member_->slot().idle_since.store(now);
  for (uint32_t device = 0; device < member_->device_count(); ++device) {
    const uint64_t turn = seats_[device].word->load();
    if ((turn & kTurnHolder) != mine() || (turn & kTurnContended) == 0) continue;
    const int waiter = arbiter_.next(node(static_cast<uint8_t>(device)), now);
    if (waiter < 0) continue;
    ArbiterSlot& slot = arbiter_.page().slots[waiter];
    slot.woken.fetch_add(1);
    FutexWake(slot.woken, 1);
  }
}

void Share::resume(uint8_t device) {
  Seat& seat = seats_[device];
  if (!std::exchange(seat.idle, false)) return;
  {
    const std::lock_guard lock(mutex_);
    ++epoch_;
    member_->slot().idle_since.store(0);
  }
  holding_ = true;
  // The device was kept from others for so long; a longer gap was nobody's.
  const uint64_t now = MonotonicNanoseconds();
  seat.charged = std::max(seat.charged, now - std::min(now, kLinger));
}

}  // namespace flagos::executor
