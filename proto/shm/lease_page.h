// SPDX-License-Identifier: Apache-2.0
// What lies where in a lease's memory page: a memfd made by flagosd when the lease opens, which every executor of the
// lease maps for writing. It says what the lease may hold of each device, and each executor writes into a slot of its
// own what it holds. Nobody keeps a sum, so a process that dies in the middle of anything leaves no sum wrong.
//
// A slot belongs to whoever holds the record lock (fcntl, F_SETLK) of the byte of the file with the slot's number: the
// kernel gives it back when the process ends, so that a slot is taken and given back without flagosd. The memory of a
// process that is ending may be freed after its locks: what it held counts until the process itself is gone.
//
// Executors are semi-trusted: whoever maps the page checks its head, and reads each word once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "proto/shm/layout.h"

namespace flagos {

inline constexpr uint64_t kLeaseMagic = 0x455341454c474c46;  // "FLGLEASE"
inline constexpr uint32_t kLeaseVersion = 1;
inline constexpr uint32_t kLeaseSlots = 256;  // executors of a lease at a time

// What one executor holds of one device, in bytes. The sum of both counts against the quota.
struct LeaseHolding {
  std::atomic<uint64_t> charged{0};
  // Asked for: written before the sum is looked at, so that of two who ask at once the later one sees the other.
  // Whoever adds up reads it before `charged`, to which it is moved.
  std::atomic<uint64_t> claimed{0};
};

// Written by the holder of the slot's lock alone.
struct LeaseSlot {
  alignas(kCacheLine) std::atomic<uint64_t> session{0};  // its number; 0: nobody's
  std::atomic<int64_t> pid{0};                           // of the executor,
  std::atomic<uint64_t> pid_started{0};                  // and when it started, as /proc has it: numbers come again
  alignas(kCacheLine) std::array<LeaseHolding, kMaxDevices> devices;  // by number on the node
};

// What changes has cache lines of its own.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct LeasePage {
  // The head; constant once flagosd has handed the page out.
  std::atomic<uint64_t> magic{0};
  std::atomic<uint32_t> version{0};
  std::atomic<uint32_t> slot_count{0};
  std::atomic<uint32_t> device_count{0};
  // Slots from here on were never taken; grows.
  alignas(kCacheLine) std::atomic<uint32_t> slots_used{0};
  // Bytes that the lease may hold of each device, by number on the node; 0: no limit. Written by flagosd.
  alignas(kCacheLine) std::array<std::atomic<uint64_t>, kMaxDevices> quota{};
  std::array<LeaseSlot, kLeaseSlots> slots;
};

}  // namespace flagos
