// SPDX-License-Identifier: Apache-2.0
// Which reply slots wait for an answer, and answering them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "proto/shm/replies.h"
#include "proto/wire/error.h"
#include "proto/wire/reply.h"
#include "server/executor/failures.h"

namespace flagos::executor {

// Thread safe: the dispatch thread opens, anyone answers. Every open slot is answered exactly once, whoever comes
// first.
class ReplySlots {
 public:
  // Both are borrowed and outlive this.
  ReplySlots(ReplyWriter& writer, Failures& failures) : writer_(writer), failures_(failures) {}

  // The record `sequence` wants its answer in `slot`. False: the slot's last answer is still due, or there is no such
  // slot.
  bool open(uint32_t slot, uint64_t sequence);
  bool is_open(uint32_t slot, uint64_t sequence) const;

  // Answers, with the warnings kept by Failures before `warnings`. Too large an answer becomes an error that says so.
  // No effect where the record was answered before.
  void answer(uint32_t slot, uint64_t sequence, const Error& error, std::span<const Warning> warnings,
              std::span<const std::byte> body);
  // Answers with an earlier record's failure.
  void answer_deferred(uint32_t slot, uint64_t sequence, const Error& error);
  // Answers whatever is still open.
  void answer_all(const Error& error);

 private:
  bool close(uint32_t slot, uint64_t sequence);
  void write(uint32_t slot, uint64_t sequence, const Error& error, bool deferred, std::span<const Warning> warnings,
             std::span<const std::byte> body);

  ReplyWriter& writer_;
  Failures& failures_;
  std::array<std::atomic<uint64_t>, kReplySlotCount> due_{};  // sequence of the record to answer; 0: none
};

}  // namespace flagos::executor
