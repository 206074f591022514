// SPDX-License-Identifier: Apache-2.0
// Tells whoever looks at a session why a thread of its client waits.
#pragma once

#include "proto/shm/futex.h"
#include "proto/shm/layout.h"

namespace flagos {

// Shows `reason` in the client's page while it lives. For display only: nothing is decided by it. Where several threads
// wait, the first one's reason is shown. Its beginning follows the reason a moment later; until then it reads 0.
class BlockedMark {
 public:
  BlockedMark(ClientPage* client, BlockReason reason) : client_(client) {
    client_->blocked_count.fetch_add(1, std::memory_order_relaxed);
    uint32_t none = static_cast<uint32_t>(BlockReason::kNone);
    shown_ = client_->blocked_reason.compare_exchange_strong(none, static_cast<uint32_t>(reason));
    if (shown_) client_->blocked_since_ns.store(MonotonicNanoseconds(), std::memory_order_relaxed);
  }
  ~BlockedMark() {
    if (!shown_) return;
    client_->blocked_since_ns.store(0, std::memory_order_relaxed);
    client_->blocked_reason.store(static_cast<uint32_t>(BlockReason::kNone));
  }
  BlockedMark(const BlockedMark&) = delete;
  BlockedMark& operator=(const BlockedMark&) = delete;

 private:
  ClientPage* const client_;
  bool shown_ = false;
};

}  // namespace flagos
