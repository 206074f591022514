// SPDX-License-Identifier: Apache-2.0
// What asynchronous records left behind for the next reply to tell.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "proto/shm/layout.h"
#include "proto/wire/error.h"
#include "proto/wire/reply.h"

namespace flagos::executor {

// Thread safe. Asking whether there is anything takes no lock.
class Failures {
 public:
  explicit Failures(ExecutorPage* page) : page_(page) {}

  // Keeps the failure of the oldest record until it is told; what follows from it is dropped. `operator_name` may be
  // empty.
  void fail(uint64_t sequence, const Error& error, const std::string& operator_name);
  bool pending() const { return pending_.load(std::memory_order_acquire) != 0; }
  // The kept failure if it is of a record before `sequence`, with its operator and sequence in the text; it is then
  // told.
  std::optional<Error> take_before(uint64_t sequence);
  // Forgets the kept failure if it is this very error, which a reader of a poisoned tensor is being told.
  void forget(const Error& error);

  // Keeps the first few; the rest of a flood says nothing new.
  void warn(std::vector<Warning> warnings);
  std::vector<Warning> take_warnings();

 private:
  void clear();  // REQUIRES mutex_

  ExecutorPage* const page_;
  std::atomic<uint64_t> pending_{0};  // sequence of the kept failure; 0: none
  std::atomic<bool> warned_{false};
  std::mutex mutex_;
  Error error_;                    // GUARDED_BY(mutex_)
  std::string operator_name_;      // GUARDED_BY(mutex_)
  std::vector<Warning> warnings_;  // GUARDED_BY(mutex_)
};

}  // namespace flagos::executor
