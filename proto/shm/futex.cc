// SPDX-License-Identifier: Apache-2.0
#include "proto/shm/futex.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace flagos {
namespace {

constexpr uint64_t kDefaultSpin = 50'000;
constexpr uint64_t kDefaultWatch = 10'000'000;
constexpr uint64_t kMaxSpin = 10'000'000;
constexpr int kCoresToSpare = 4;

const uint32_t* LowHalf(const std::atomic<uint64_t>& word) {
  static_assert(sizeof(word) == sizeof(uint64_t) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return reinterpret_cast<const uint32_t*>(&word);
}

int Cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : kCoresToSpare;
}

uint64_t ReadSpin() {
  if (const char* text = std::getenv("FLAGOS_SPIN_US")) {
    const uint64_t spin = std::strtoull(text, nullptr, 10) * 1000;
    return spin < kMaxSpin ? spin : kMaxSpin;
  }
  return Cores() < 2 ? 0 : kDefaultSpin;
}

}  // namespace

void FutexWait(const std::atomic<uint64_t>& word, uint64_t expected, std::chrono::nanoseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timespec limit{};
  limit.tv_sec = seconds.count();
  limit.tv_nsec = (timeout - seconds).count();
  ::syscall(SYS_futex, LowHalf(word), FUTEX_WAIT, static_cast<uint32_t>(expected), &limit, nullptr, 0);
}

void FutexWake(const std::atomic<uint64_t>& word, int waiters) {
  ::syscall(SYS_futex, LowHalf(word), FUTEX_WAKE, waiters, nullptr, nullptr, 0);
}

uint64_t MonotonicNanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t SpinNanoseconds() {
  static const uint64_t spin = ReadSpin();
  return spin;
}

uint64_t DeviceWatchNanoseconds() {
  static const uint64_t watch =
      std::getenv("FLAGOS_SPIN_US") == nullptr && Cores() >= kCoresToSpare ? kDefaultWatch : 0;
  return watch;
}

}  // namespace flagos
