// SPDX-License-Identifier: Apache-2.0
// The process's session with an executor: the ring, the replies, the arena, and the numbers that the client hands out.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/address_space.h"
#include "client/arena.h"
#include "client/connection.h"
#include "client/handles.h"
#include "client/late_frees.h"
#include "client/number_pool.h"
#include "proto/shm/replies.h"
#include "proto/shm/ring.h"
#include "proto/wire/records.h"
#include "proto/wire/reply.h"

namespace flagos::client {

// What the process asked of its session so far; relaxed counters for display.
struct SessionCounters {
  std::atomic<uint64_t> calls{0};              // kCall records
  std::atomic<uint64_t> synchronous_calls{0};  // of them, those that waited
  std::atomic<uint64_t> signatures{0};         // kDefineSignature records
  std::atomic<uint64_t> predictions{0};        // of them, those that say what the call returns
};

// Thread safe except where noted. Lives until the process ends: tensors outlive every scope.
class Session {
 public:
  // Attaches on first use; throws c10::Error that says what, why and what to do. Later calls are one atomic load.
  // In a forked child of an attached process it throws (fork guard).
  static Session& Get() {
    Session* const session = current_.load(std::memory_order_acquire);
    return session != nullptr ? *session : Attach();
  }
  // Null before the first attach, in a forked child, and during process exit; never throws, never attaches.
  static Session* Current() noexcept { return current_.load(std::memory_order_acquire); }
  // What is known of the devices: the session's records, before the first attach those of Devices(). By index; may be
  // empty.
  static const std::vector<DeviceRecord>& KnownDevices() noexcept {
    const Session* const session = Current();
    return session != nullptr ? session->connection_.devices : Devices().records;
  }
  // Installs the handler of fork; once a process, before anything else here.
  static void HandleForks();
  // Whether this process is a forked child of one that had attached, so that Get() can only throw.
  static bool InBadFork() noexcept;

  // Writes one record; blocks while the ring is full; throws when the executor is gone. Returns its sequence.
  uint64_t send(const RecordHeader& header, std::span<const std::byte> payload = {});
  // The same from destructors: false instead of throwing.
  bool try_send(const RecordHeader& header, std::span<const std::byte> payload = {}) noexcept;
  // Writes a SYNC record (the ReplyTarget is put before `payload` here), waits, raises warnings again and throws the
  // answered error as the Python exception type it stands for. Returns the reply's body.
  // `sequence`, unless null, becomes the record's.
  std::vector<std::byte> request(RecordHeader header, std::span<const std::byte> payload = {},
                                 uint64_t* sequence = nullptr);

  // For the hot path, which does by itself, under lock(), what send() and request() do:
  ProducerLock& lock() { return lock_; }
  // Room for a payload; throws like send(). REQUIRES lock()
  std::byte* reserve(size_t payload) {
    ErrorCode error = ErrorCode::kDeviceLost;
    if (may_send()) {
      if (std::byte* const at = ring_->reserve(payload, error)) return at;
    }
    throw_unsent(error, payload);
  }
  // Publishes the reserved record; `payload` as reserved or less. Returns its sequence. REQUIRES lock()
  uint64_t commit(const RecordHeader& header, size_t payload) {
    const uint64_t sequence = ring_->commit(header, payload);
    if (header.stream < kMaxStreams) last_on_stream_[header.stream].store(sequence, std::memory_order_relaxed);
    return sequence;
  }
  // Both, for a payload that lies elsewhere. REQUIRES lock()
  uint64_t put(const RecordHeader& header, std::span<const std::byte> payload) {
    std::byte* const at = reserve(payload.size());
    if (!payload.empty()) std::memcpy(at, payload.data(), payload.size());
    return commit(header, payload.size());
  }
  HandleTable& handles() { return handles_; }        // REQUIRES lock()
  AddressSpace& addresses() { return *addresses_; }  // REQUIRES lock(), except contains() and max_bytes()
  NumberPool& event_numbers() { return events_; }    // REQUIRES lock()
  LateFrees& late_frees() { return late_frees_; }    // REQUIRES lock()
  // Writes the FREE record and gives number and address back. Nothing once the executor is gone. REQUIRES lock()
  void free_handle(uint32_t handle) noexcept;
  // Writes a NOTIFY fence: the stream's completion word reaches the sequence returned when all before it is done. 0
  // once the executor is gone. REQUIRES lock()
  uint64_t fence(uint16_t stream, uint8_t device) noexcept;
  // The most bytes that one record's payload may have.
  size_t max_payload() const { return ring_->max_payload(); }
  ReplyReader& replies() { return *replies_; }
  // Decodes an answer: raises its warnings, throws its error, returns the body.
  std::vector<std::byte> open_reply(std::span<const std::byte> bytes);
  // Asks the system whether the executor lives.
  bool alive() const;
  // Throws torch.AcceleratorError (kDeviceLostErrorCode) with the cause: signal, exit code, last operator.
  [[noreturn]] void throw_lost();

  // Waits until the record `sequence` of the stream slot is complete, then throws what the executor has to tell (a
  // deferred error, its own end). REQUIRES that the record or a later one of the stream has kFlagNotify.
  void wait_complete(uint16_t stream, uint8_t device, uint64_t sequence);
  // Whether all records of the stream slot so far are complete. Never blocks for the device.
  bool is_idle(uint16_t stream, uint8_t device);
  // Waits for a stream slot, or with kAllStreams for a device, and throws an earlier asynchronous failure.
  void synchronize(uint16_t stream, uint8_t device);

  Arena& arena() { return *arena_; }
  // A block of the arena (free with arena().free()); waits for blocks that the executor still holds where there is no
  // room, and throws where that does not help.
  std::byte* allocate_arena(size_t bytes);

  uint32_t generation() const { return connection_.generation; }
  uint32_t device_count() const { return static_cast<uint32_t>(connection_.devices.size()); }
  const Connection& connection() const { return connection_; }
  const ExecutorPage& page() const { return replies_->page(); }
  SessionCounters& counters() { return counters_; }
  // The executor is gone.
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  // Sequence of the newest record sent on a stream slot; 0 if none.
  uint64_t last_on_stream(uint16_t stream) const { return last_on_stream_[stream].load(std::memory_order_relaxed); }
  // True: FLAGOS_LAUNCH_BLOCKING=1, every call is synchronous.
  bool launch_blocking() const { return launch_blocking_; }

 private:
  Session(Connection connection, std::unique_ptr<AddressSpace> addresses);
  static Session& Attach();
  static void AtFork() noexcept;
  static void AtExit() noexcept;

  [[noreturn]] void throw_unsent(ErrorCode error, size_t payload);
  // Cheaper: reads what flagosd says of the executor, and looks at the socket once in a while, for when flagosd is gone
  // too. REQUIRES lock()
  bool may_send() {
    const bool ended = page().state.load(std::memory_order_relaxed) >= static_cast<uint64_t>(ExecutorState::kEnded);
    if (!ended && ++records_since_look_ < kLivenessRecords) return !lost();
    records_since_look_ = 0;
    return alive();
  }
  void close() noexcept;
  std::string cause_of_loss() const;

  static constexpr uint32_t kLivenessRecords = 256;
  static constinit std::atomic<Session*> current_;

  const Connection connection_;
  const bool launch_blocking_;
  ClientPage* const client_page_;
  mutable std::atomic<bool> lost_{false};
  ProducerLock lock_;
  uint32_t records_since_look_ = 0;  // GUARDED_BY(lock_)
  std::unique_ptr<RingProducer> ring_;
  std::unique_ptr<ReplyReader> replies_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<AddressSpace> addresses_;
  HandleTable handles_;                   // GUARDED_BY(lock_)
  NumberPool events_{1, kMaxEvents - 1};  // GUARDED_BY(lock_)
  LateFrees late_frees_;                  // GUARDED_BY(lock_)
  SessionCounters counters_;
  std::array<std::atomic<uint64_t>, kMaxStreams> last_on_stream_{};
  std::array<std::atomic<uint64_t>, kMaxStreams> last_fence_{};
  // What a wait has shown to be complete: a stream up to this sequence, a device with all its streams.
  std::array<std::atomic<uint64_t>, kMaxStreams> synchronized_stream_{};
  std::array<std::atomic<uint64_t>, kMaxDevices> synchronized_device_{};
};

}  // namespace flagos::client
