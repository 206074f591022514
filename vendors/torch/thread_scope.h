// SPDX-License-Identifier: Apache-2.0
// How a thread that runs calls is set up.
#pragma once

#include <c10/core/InferenceMode.h>

#include "vendors/torch/warnings.h"

namespace flagos::torch_host {

// Puts the calling thread, from its first call on and until it ends, below autograd: inference mode (no gradients, no
// version counters; the client keeps both) and warnings collected. Per thread, not per call: a call costs nothing.
class ThreadScope {
 public:
  // The calling thread's; cheap after the first time, but worth keeping.
  static ThreadScope& Enter();

  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;
  WarningCollector& warnings() { return warnings_; }

 private:
  ThreadScope() : guard_(&warnings_) {}

  c10::InferenceMode inference_;
  WarningCollector warnings_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace flagos::torch_host
