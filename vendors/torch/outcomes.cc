// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/outcomes.h"

#include <algorithm>

#include "vendors/torch/failures.h"
#include "vendors/torch/tensors.h"

namespace flagos::torch_host {

Settled SettleSynchronous(const PreparedCall& call, CallFrame& frame, const CallInputs& inputs,
                          AllocateResult allocate) {
  Settled settled;
  settled.resized = DescribeResized(call, frame, inputs.device);
  if (call.predicted) {
    settled.results.outcome = *call.expected;
    settled.as_predicted = Adapt(call, frame, inputs, allocate, {}, settled.results.storages);
    ReadValues(call, frame, settled.results.outcome);
    CheckResized(call, settled.resized);
  } else {
    settled.results = Describe(call, frame, inputs);
    for (const ResizedInput& item : settled.resized) settled.results.outcome.resized.push_back(item.resized);
  }
  return settled;
}

void CheckWritten(const PreparedCall& call, const CallFrame& frame) {
  for (size_t i = 0; i < call.written.size(); ++i) {
    const PreparedTensor& item = call.tensors[call.written[i]];
    if (item.resizable || SameLayout(*frame.written[i], item.geometry)) [[likely]]
      continue;
    throw Refusal(ErrorCode::kNotImplemented,
                  call.op->name +
                      " gave a tensor that it works on in place another shape, which flagos supports for out= tensors "
                      "only; pass it a tensor that has the shape already, or run it on the CPU");
  }
}

void CheckResized(const PreparedCall& call, const std::vector<ResizedInput>& resized) {
  const auto same = [](const ResizedInput& got, const Resized& expected) {
    return got.resized.input == expected.input && got.resized.geometry == expected.geometry;
  };
  if (!std::ranges::equal(resized, call.expected->resized, same)) {
    throw Refusal(ErrorCode::kInternal, call.op->name +
                                            " resized its out= tensors otherwise than the client expects; "
                                            "report this as a bug");
  }
}

void CheckHandles(const PreparedCall& call, const Settled& settled, std::span<const uint32_t> inputs,
                  std::span<const uint32_t> outputs) {
  if (settled.results.storages.size() > outputs.size()) {
    throw Refusal(ErrorCode::kOutOfRange,
                  call.op->name + " returned " + std::to_string(settled.results.storages.size()) +
                      " tensors, but the call gave " + std::to_string(outputs.size()) + " handles for them");
  }
  for (const ResizedInput& item : settled.resized) {
    if (inputs[item.resized.input] == 0 && item.resized.storage_bytes > 0) {
      throw Refusal(ErrorCode::kMalformed, call.op->name + " resizes an out= tensor that has no storage of its own");
    }
  }
}

void Remember(PreparedCall& call, const Outcome& outcome) {
  if (call.expected || call.op->dynamic || !call.sparse.empty() || HasSparse(outcome)) return;
  call.output_handles = OutputHandles(outcome);
  call.expected = outcome;
}

}  // namespace flagos::torch_host
