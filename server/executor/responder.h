// SPDX-License-Identifier: Apache-2.0
// The executor's Responder: answers one SYNC record in its slot.
#pragma once

#include <cstdint>
#include <span>

#include "server/executor/reply_slots.h"
#include "vendors/interface/vendor.h"

namespace flagos::executor {

// Thread safe; may outlive the session's end, when it has no effect any more, but not the ReplySlots.
class SlotResponder final : public vendor::Responder {
 public:
  // REQUIRES slots.open(slot, sequence) to have succeeded.
  SlotResponder(ReplySlots& slots, uint32_t slot, uint64_t sequence)
      : slots_(slots), slot_(slot), sequence_(sequence) {}
  SlotResponder(const SlotResponder&) = delete;
  SlotResponder& operator=(const SlotResponder&) = delete;
  ~SlotResponder() override;

  void respond(const Error& error, std::span<const Warning> warnings, std::span<const std::byte> body) override {
    slots_.answer(slot_, sequence_, error, warnings, body);
  }

 private:
  ReplySlots& slots_;
  const uint32_t slot_;
  const uint64_t sequence_;
};

}  // namespace flagos::executor
