// SPDX-License-Identifier: Apache-2.0
// What lies where in a session's shared regions. Three memfds, made by flagosd:
//   ring      the client writes, the executor and flagosd only read: ClientPage, then the ring's bytes
//   executor  the executor writes (and flagosd, once it is gone), the client only reads: ExecutorPage, reply slots
//   arena     both write: bulk bytes, handed out by the client
// All words are atomics; there are no fences and no locks in shared memory, so a peer that dies holds nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proto/wire/types.h"

namespace flagos {

inline constexpr size_t kCacheLine = 64;
inline constexpr size_t kPage = 4096;
inline constexpr uint64_t kMinRingBytes = 1u << 16;  // a power of two
inline constexpr uint64_t kMaxRingBytes = 1u << 30;
inline constexpr uint32_t kReplySlotCount = 32;
inline constexpr uint32_t kReplyBytes = 1u << 18;  // of one slot, its head included
inline constexpr size_t kOperatorNameBytes = 1u << 18;
inline constexpr size_t kEndCauseBytes = 512;

// Why a producer waits; what `flagosctl` shows.
enum class BlockReason : uint32_t { kNone = 0, kRingFull = 1, kReplySlots = 2, kArenaFull = 3 };

// Written by the client alone. Everyone else treats it as hostile.
struct ClientPage {
  alignas(kCacheLine) std::atomic<uint64_t> head{0};  // bytes ever written; grows
  // Client threads that sleep on a word of the executor's region. The executor wakes only where it is not zero.
  alignas(kCacheLine) std::atomic<uint32_t> sleepers{0};
  alignas(kCacheLine) std::atomic<uint32_t> blocked_reason{0};  // BlockReason
  std::atomic<uint64_t> blocked_since_ns{0};                    // CLOCK_MONOTONIC
  std::atomic<uint64_t> blocked_count{0};                       // waits so far, for any of these reasons
};
static_assert(sizeof(ClientPage) <= kPage);

enum class ExecutorState : uint32_t { kStarting = 0, kRunning = 1, kEnded = 2, kLost = 3 };

// Figures of one device as the session may see them, kept current by the executor.
struct DeviceFigures {
  std::atomic<int64_t> allocated_bytes{0}, reserved_bytes{0}, peak_allocated_bytes{0}, total_bytes{0};
};

struct ExecutorPage {
  alignas(kCacheLine) std::atomic<uint64_t> tail{0};      // bytes of the ring ever consumed; grows: the credits
  alignas(kCacheLine) std::atomic<uint32_t> sleeping{0};  // 1 while the consumer sleeps on ClientPage::head
  // Life of the executor. flagosd writes kLost and the cause when it finds the process gone.
  alignas(kCacheLine) std::atomic<uint64_t> state{0};  // ExecutorState; changes wake sleepers
  std::atomic<int32_t> exit_signal{0};
  std::atomic<int32_t> exit_code{0};
  char end_cause[kEndCauseBytes]{};  // why it ended, zero-terminated; written before `state` says so
  // Breadcrumb: the record that is running or ran last, and the operator of the latest call; survives a crash.
  // `last_operator` is an offset into `operator_names` + 1; 0 before the first call.
  alignas(kCacheLine) std::atomic<uint64_t> running_sequence{0};
  std::atomic<uint32_t> last_operator{0};
  // Counters for flagosctl and torch.flagos.
  alignas(kCacheLine) std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> synchronous_calls{0};
  std::atomic<uint64_t> mispredictions{0};
  std::atomic<uint64_t> busy_ns{0};
  std::atomic<uint64_t> last_active_ns{0};  // CLOCK_MONOTONIC
  // Sequence of the oldest asynchronous failure not told yet; 0 if none.
  std::atomic<uint64_t> deferred_error{0};
  std::atomic<uint64_t> failures{0};  // asynchronous failures ever, told or not; grows before what follows completes
  // 1: a device knows pages of the arena by their place in memory, so that the client gives none back to the kernel.
  std::atomic<uint32_t> arena_in_place{0};
  alignas(kCacheLine) std::array<DeviceFigures, kMaxDevices> devices;
  // Growing completion words: the newest NOTIFY record of each stream that is complete.
  alignas(kCacheLine) std::array<std::atomic<uint64_t>, kMaxStreams> completed{};
  // Zero-terminated names of the operators defined so far, one after the other.
  alignas(kCacheLine) char operator_names[kOperatorNameBytes]{};
};

// Head of a reply slot; the reply's bytes follow. `sequence` grows to that of the answered record once the bytes are
// there.
struct ReplySlot {
  alignas(kCacheLine) std::atomic<uint64_t> sequence{0};
  std::atomic<uint32_t> size{0};  // bytes of the reply
};

inline constexpr uint64_t kReplyOffset = (sizeof(ExecutorPage) + kPage - 1) / kPage * kPage;
inline constexpr uint64_t kExecutorRegionBytes = kReplyOffset + uint64_t{kReplySlotCount} * kReplyBytes;
inline constexpr uint32_t kMaxReplyBytes = kReplyBytes - sizeof(ReplySlot);

constexpr uint64_t RingRegionBytes(uint64_t ring_bytes) { return kPage + ring_bytes; }

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace flagos
