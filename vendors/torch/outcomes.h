// SPDX-License-Identifier: Apache-2.0
// The steps after a kernel that calls on the dispatch thread and queued ones share.
#pragma once

#include "vendors/torch/results.h"

namespace flagos::torch_host {

// A synchronous call's results: fitted to the prediction where there is one, else as they are.
struct Settled {
  Results results;
  std::vector<ResizedInput> resized;
  bool as_predicted = true;
};
Settled SettleSynchronous(const PreparedCall& call, CallFrame& frame, const CallInputs& inputs,
                          AllocateResult allocate);

// After a kernel has run: throws Refusal where it gave a tensor that is no out= tensor another shape, of which the
// client would not know. REQUIRES the frame as the kernel left it.
void CheckWritten(const PreparedCall& call, const CallFrame& frame);

// Compares what an asynchronous call resized with what the client has resized; throws Refusal where they differ.
void CheckResized(const PreparedCall& call, const std::vector<ResizedInput>& resized);

// Throws Refusal where a call gives fewer handles than its results take, or resizes the storage of handle 0.
void CheckHandles(const PreparedCall& call, const Settled& settled, std::span<const uint32_t> inputs,
                  std::span<const uint32_t> outputs);

// What later asynchronous calls have to return, from the first synchronous one.
void Remember(PreparedCall& call, const Outcome& outcome);

}  // namespace flagos::torch_host
