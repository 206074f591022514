// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of shared memory, and spinning before that.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace flagos {

// How long one sleeps on a peer's word before it asks whether the peer lives.
inline constexpr std::chrono::milliseconds kLivenessPoll{50};

// The low half of a growing 64-bit word, which is what the kernel compares. Waking works on read-only mappings.
// Sleeps while the low half equals `expected`'s, until woken, a signal, or the timeout: callers re-check in a loop.
void FutexWait(const std::atomic<uint64_t>& word, uint64_t expected, std::chrono::nanoseconds timeout);
void FutexWake(const std::atomic<uint64_t>& word, int waiters);

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint64_t MonotonicNanoseconds();

// How long to spin before sleeping, in nanoseconds; 0 where this process may use one core only, since then spinning
// keeps the peer from running. FLAGOS_SPIN_US overrides it in either process.
uint64_t SpinNanoseconds();
// How long to watch for a device after that, where a driver in process would spin for as long as it takes: a thread
// that sleeps comes back late. 0 where this process has no cores to spare. FLAGOS_SPIN_US overrides the sum.
uint64_t DeviceWatchNanoseconds();

// Spins until `ready()` or for `nanoseconds`; true if ready. Once in 64 turns the core is offered to others, for the
// peer may be waiting for this very core (the scheduler likes to wake a process where its waker runs), and the clock is
// read.
template <class Ready>
bool SpinUntil(Ready&& ready, uint64_t nanoseconds) {
  if (ready()) return true;
  if (nanoseconds == 0) return false;
  const uint64_t deadline = MonotonicNanoseconds() + nanoseconds;
  do {
    for (int turn = 0; turn < 64; ++turn) {
      CpuRelax();
      if (ready()) return true;
    }
    ::sched_yield();
    if (ready()) return true;
  } while (MonotonicNanoseconds() < deadline);
  return false;
}

// The same without offering the core: for a wait that is all that its thread has to do.
template <class Ready>
bool WatchUntil(Ready&& ready, uint64_t nanoseconds) {
  if (nanoseconds == 0) return ready();
  const uint64_t deadline = MonotonicNanoseconds() + nanoseconds;
  do {
    for (int turn = 0; turn < 64; ++turn) {
      if (ready()) return true;
      CpuRelax();
    }
  } while (MonotonicNanoseconds() < deadline);
  return false;
}

}  // namespace flagos
