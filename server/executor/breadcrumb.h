// SPDX-License-Identifier: Apache-2.0
// What the executor is doing, in shared memory, so that a crash can be blamed on a record and an operator.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/shm/layout.h"

namespace flagos::executor {

// add_name, enter_call and enter_other are for the dispatch thread.
class Breadcrumb {
 public:
  explicit Breadcrumb(ExecutorPage* page) : page_(page) {}

  // Remembers an operator's name for as long as the region lives; returns its place, for enter_call(). 0 when the area
  // is full.
  uint32_t add_name(std::string_view name);

  // The record `sequence` begins, a call of the operator at `place`. Stays when it is done.
  void enter_call(uint64_t sequence, uint32_t place) {
    enter(sequence, place);
    page_->last_operator.store(place, std::memory_order_relaxed);
  }

  // The record `sequence` begins and is no call. The last operator stays: what it left behind may be what fails now.
  void enter_other(uint64_t sequence) { enter(sequence, 0); }

  // The operator of one of the latest records, for errors that come later than the record; empty if it is no call, or
  // not known any more.
  std::string name_of(uint64_t sequence) const;

  // The operators of the latest calls, each once, newest first, at most `most` of them. Thread safe.
  std::vector<std::string> latest_calls(size_t most) const;

 private:
  void enter(uint64_t sequence, uint32_t place) {
    page_->running_sequence.store(sequence, std::memory_order_relaxed);
    recent_[sequence % kRecent].store(place, std::memory_order_relaxed);
  }

  static constexpr size_t kRecent = 4096;

  ExecutorPage* const page_;
  size_t used_ = 0;
  std::array<std::atomic<uint32_t>, kRecent> recent_{};
};

}  // namespace flagos::executor
