// SPDX-License-Identifier: Apache-2.0
// The session's part in sharing out its devices' time (proto/shm/arbiter.h): takes a turn before calls, bounds what is
// in flight, and passes the turn on. While nobody on the device asks for an unusual share, or nobody else waits, it
// costs one relaxed load a call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "proto/shm/arbiter.h"
#include "proto/shm/futex.h"

namespace flagos::executor {

// For the dispatch thread, but for stop(). Outlives the Backend whose fence it uses.
class Share {
 public:
  // Calls `done` once, from any thread, after all that was queued on the device so far.
  using Fence = std::function<void(uint8_t device, std::function<void()> done)>;

  explicit Share(std::unique_ptr<ArbiterMember> member);
  const ArbiterMember& member() const { return *member_; }
  // Before the first call.
  void use(Fence fence) { fence_ = std::move(fence); }

  // Before a call is made on the device: returns once it is the session's turn there.
  void enter(uint8_t device) {
    Seat& seat = seats_[device];
    if (seat.word->load(std::memory_order_relaxed) == seat.seen && --seat.calls_left != 0) [[likely]]
      return;
    check(device);
  }
  // There is nothing to do for now.
  void idle() {
    if (holding_) [[unlikely]]
      give_way();
  }
  // From any thread: the session ends, and waits for no turn any more.
  void stop();

 private:
  // The session's place at a device. What it saw last of the turn is what lets it pass.
  struct Seat {
    std::atomic<uint64_t>* word = nullptr;
    uint64_t seen = 0;
    uint32_t calls_left = UINT32_MAX;  // until the next look; UINT32_MAX: no turns are taken here
    uint32_t calls_each = 16;          // between two looks
    bool held = false;
    bool idle = false;
    uint64_t taken = 0;               // when the turn was, CLOCK_MONOTONIC, as all below
    uint64_t charged = 0;             // until when the lease was charged
    uint64_t looked_at = 0;           // when the last look was
    uint64_t marks = 0;               // fences asked for
    std::atomic<uint64_t> passed{0};  // fences reached
  };

  void check(uint8_t device);
  void acquire(uint8_t device);
  // What a holder has to see to now and then.
  void look(uint8_t device, uint64_t turn);
  bool must_yield(uint8_t device, uint64_t turn, uint64_t now) const;
  void charge(uint8_t device, uint64_t now);
  // Waits until at most `left` fences of the device are not reached.
  void wait_for_marks(uint8_t device, uint64_t left);
  void mark(uint8_t device);
  void yield(uint8_t device);
  void give_way();
  void resume(uint8_t device);
  void show_idle(uint64_t epoch);
  uint64_t mine() const { return member_->slot_number() + 1; }
  uint32_t node(uint8_t device) const { return member_->node_device(device); }

  const std::unique_ptr<ArbiterMember> member_;
  const Arbiter& arbiter_;
  Fence fence_;
  std::array<Seat, kMaxDevices> seats_;
  bool holding_ = false;  // a turn, and is not idle
  std::atomic<bool> stopped_{false};

  std::mutex mutex_;
  uint64_t epoch_ = 0;   // GUARDED_BY(mutex_); of being idle
  uint32_t fences_ = 0;  // GUARDED_BY(mutex_); not reached yet since then
};

}  // namespace flagos::executor
