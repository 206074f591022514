// SPDX-License-Identifier: Apache-2.0
#include "server/executor/reply_slots.h"

#include <string>
#include <vector>

namespace flagos::executor {

bool ReplySlots::open(uint32_t slot, uint64_t sequence) {
  if (slot >= kReplySlotCount) return false;
  uint64_t none = 0;
  return due_[slot].compare_exchange_strong(none, sequence, std::memory_order_acq_rel);
}

bool ReplySlots::is_open(uint32_t slot, uint64_t sequence) const {
  return due_[slot].load(std::memory_order_acquire) == sequence;
}

// Taken back before the answer is written: the client may use the slot again as soon as it sees the answer.
bool ReplySlots::close(uint32_t slot, uint64_t sequence) {
  return due_[slot].compare_exchange_strong(sequence, 0, std::memory_order_acq_rel);
}

void ReplySlots::answer(uint32_t slot, uint64_t sequence, const Error& error, std::span<const Warning> warnings,
                        std::span<const std::byte> body) {
  if (!close(slot, sequence)) return;
  if (!error.ok() && failures_.pending()) failures_.forget(error);
  write(slot, sequence, error, false, warnings, body);
}

void ReplySlots::answer_deferred(uint32_t slot, uint64_t sequence, const Error& error) {
  if (close(slot, sequence)) write(slot, sequence, error, true, {}, {});
}

void ReplySlots::answer_all(const Error& error) {
  for (uint32_t slot = 0; slot < kReplySlotCount; ++slot) {
    const uint64_t sequence = due_[slot].exchange(0, std::memory_order_acq_rel);
    if (sequence != 0) write(slot, sequence, error, false, {}, {});
  }
}

void ReplySlots::write(uint32_t slot, uint64_t sequence, const Error& error, bool deferred,
                       std::span<const Warning> warnings, std::span<const std::byte> body) {
  thread_local ByteWriter out;  // keeps its memory from answer to answer
  std::vector<Warning> all = failures_.take_warnings();
  if (!all.empty()) {
    all.insert(all.end(), warnings.begin(), warnings.end());
    warnings = all;
  }
  out.clear();
  EncodeReplyHead(out, error, deferred, warnings);
  if (error.ok()) out.append(body.data(), body.size());
  if (out.size() > kMaxReplyBytes) {
    const Error too_large = MakeError(
        ErrorCode::kOutOfRange, "an answer of " + std::to_string(out.size()) + " bytes does not fit a reply slot of " +
                                    std::to_string(kMaxReplyBytes) + "; split the call into ones that return less");
    out.clear();
    EncodeReplyHead(out, too_large, false, warnings);
  }
  writer_.reply(slot, sequence, out.bytes());
}

}  // namespace flagos::executor
