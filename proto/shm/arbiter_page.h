// SPDX-License-Identifier: Apache-2.0
// What lies where in the arbiter's page: a memfd made by flagosd, which every executor maps for writing. In it
// executors share out the time of each device among leases, by turns, whether flagosd runs or not.
//
// flagosd writes leases; an executor writes its slot, which is its own as in a lease's page (slot_lock.h); turns are
// everybody's. Nothing here keeps anybody from computing for good: a turn lapses by time, whatever its holder does, and
// damage to the page costs fairness, no results.
//
// Executors are semi-trusted: whoever maps the page checks its head, reads each word once and bounds each number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "proto/shm/layout.h"

namespace flagos {

inline constexpr uint64_t kArbiterMagic = 0x5245544942524146;  // "FARBITER"
inline constexpr uint32_t kArbiterVersion = 1;
inline constexpr uint32_t kArbiterLeases = 1024;
inline constexpr uint32_t kArbiterSlots = 1024;  // executors at a time

// Higher goes first, whatever the weights.
enum class ShareClass : uint32_t { kBatch = 0, kNormal = 1, kRealTime = 2 };
inline constexpr uint32_t kShareClasses = 3;

enum class ComputeMode : uint32_t {
  kStrict = 0,          // a lease never gets more than its maximum
  kWorkConserving = 1,  // ... while another one wants the device
};

// What a lease has had of one device. All in nanoseconds.
struct ArbiterUse {
  std::atomic<uint64_t> used{0};        // of the device's time
  std::atomic<uint64_t> virtual_ns{0};  // the same, of a lease of weight 100: who has least goes next in its class
  std::atomic<uint64_t> not_before{0};  // CLOCK_MONOTONIC: until then it has had its maximum
};

// Entry 0 is that of leases for which there was no other.
struct ArbiterLease {
  alignas(kCacheLine) std::atomic<uint64_t> taken{0};               // flagosd's, not 0 while the entry is a lease's
  std::atomic<uint32_t> weight{0};                                  // 1 to kMaxWeight
  std::atomic<uint32_t> max_percent{0};                             // 1 to 100
  std::atomic<uint32_t> share_class{0};                             // ShareClass
  alignas(kCacheLine) std::array<ArbiterUse, kMaxDevices> devices;  // by number on the node
};

struct ArbiterSlot {
  alignas(kCacheLine) std::atomic<uint64_t> session{0};  // its number; 0: nobody's
  std::atomic<int64_t> pid{0};
  std::atomic<uint64_t> pid_started{0};
  std::atomic<uint64_t> devices{0};                        // mask of those of the node that the session has
  std::atomic<uint32_t> lease{0};                          // its entry
  alignas(kCacheLine) std::atomic<uint32_t> waits_for{0};  // device + 1; 0: for none
  std::atomic<uint64_t> heartbeat{0};                      // CLOCK_MONOTONIC, of a waiter and of a holder that computes
  std::atomic<uint64_t> idle_since{0};                     // a holder that has nothing to do, since when; 0: it has
  std::atomic<uint64_t> woken{0};                          // grows when somebody passes a turn to the slot; slept on
  std::atomic<uint64_t> throttled{0};                      // nanoseconds that it waited for turns
  std::atomic<uint64_t> last_turn{0};                      // when it got one: sessions of one lease take turns in order
};

// The turn: 0 while everybody computes as he likes, because no lease on the device asks for more or less than others.
inline constexpr uint64_t kTurnHolder = 0xffff;       // mask: slot + 1; 0: nobody's
inline constexpr uint64_t kTurnContended = 1u << 16;  // somebody waits for it
inline constexpr uint64_t kTurnArbitrated = 1u << 17;

struct ArbiterDevice {
  alignas(kCacheLine) std::atomic<uint64_t> turn{0};
  alignas(kCacheLine) std::atomic<uint64_t> granted{0};  // when the turn was taken, CLOCK_MONOTONIC
  // The most virtual time of a lease that got a turn, by class: who was away does not get what it missed.
  std::array<std::atomic<uint64_t>, kShareClasses> virtual_now{};
};

// What changes has cache lines of its own.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct ArbiterPage {
  std::atomic<uint64_t> magic{0};
  std::atomic<uint32_t> version{0};
  std::atomic<uint32_t> lease_count{0};
  std::atomic<uint32_t> slot_count{0};
  std::atomic<uint32_t> device_count{0};
  std::atomic<uint32_t> mode{0};                            // ComputeMode; flagosd changes it at any time
  alignas(kCacheLine) std::atomic<uint32_t> slots_used{0};  // slots from here on were never taken; grows
  std::array<ArbiterDevice, kMaxDevices> devices;
  std::array<ArbiterSlot, kArbiterSlots> slots;
  std::array<ArbiterLease, kArbiterLeases> leases;
};

}  // namespace flagos
