// SPDX-License-Identifier: Apache-2.0
// Answers and completion words: the executor writes, threads of the client wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "proto/shm/layout.h"
#include "proto/wire/error.h"

namespace flagos {

// Wakes whoever sleeps on a word of the executor's region but its `state`: producers that wait for credits, and those
// that wait for answers and completions. They look at the state again. Costs a system call for each word, a millisecond
// in all. REQUIRES a region of kExecutorRegionBytes.
void WakeAll(std::span<const std::byte> region);

// The executor's side. Thread safe: the dispatch thread, pollers and workers answer.
class ReplyWriter {
 public:
  ReplyWriter(const ClientPage* client, std::span<std::byte> region);
  // Answers the record `sequence` in `slot`. REQUIRES slot < kReplySlotCount and bytes.size() <= kMaxReplyBytes.
  void reply(uint32_t slot, uint64_t sequence, std::span<const std::byte> bytes);
  // Grows a stream's completion word. REQUIRES stream < kMaxStreams.
  void complete(uint32_t stream, uint64_t sequence);

 private:
  void wake(const std::atomic<uint64_t>& word);
  const ClientPage* const client_;
  const std::span<std::byte> region_;
};

// The client's side. Thread safe.
class ReplyReader {
 public:
  // `peer_alive`: see RingProducer; asked while waiting, from the waiting thread.
  ReplyReader(ClientPage* client, std::span<const std::byte> region, std::function<bool()> peer_alive);

  // A slot for one answer; waits while all are in use. release() it after the answer was read or given up.
  // nullopt: the executor is gone.
  std::optional<uint32_t> claim();
  void release(uint32_t slot);

  // Waits until the record `sequence` is answered in `slot` and copies the answer; false: the executor is gone.
  // `watch`: nanoseconds to keep the core before sleeping, once spinning is over.
  bool wait(uint32_t slot, uint64_t sequence, std::vector<std::byte>& bytes, uint64_t watch = 0);
  // Waits until a stream's completion word has reached `sequence`; false: the executor is gone.
  bool wait_complete(uint32_t stream, uint64_t sequence);
  bool is_complete(uint32_t stream, uint64_t sequence) const;

  const ExecutorPage& page() const { return *page_; }

 private:
  bool wait_word(const std::atomic<uint64_t>& word, uint64_t sequence, uint64_t watch = 0);

  ClientPage* const client_;
  const std::span<const std::byte> region_;
  const ExecutorPage* const page_;
  const std::function<bool()> peer_alive_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<uint32_t> free_;  // GUARDED_BY(mutex_)
};

}  // namespace flagos
