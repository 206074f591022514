// SPDX-License-Identifier: Apache-2.0
// A call on a stream whose work runs on a thread of its own. Its handles are bound when it is dispatched: the storages
// of known results exist at once and are filled later, so a reader that does not wait sees a wrong result, and nothing
// worse.
#pragma once

#include <memory>
#include <vector>

#include "vendors/interface/vendor.h"
#include "vendors/torch/call_frame.h"
#include "vendors/torch/device_runtime.h"
#include "vendors/torch/failures.h"
#include "vendors/torch/mailbox.h"
#include "vendors/torch/queued_failures.h"
#include "vendors/torch/results.h"
#include "vendors/torch/storage_table.h"

namespace flagos::torch_host {

// What a queued call reaches of its backend, which outlives it.
struct CallSite {
  DeviceRuntime& runtime;
  vendor::Host& host;
  Mailbox& mailbox;
  QueuedFailures& failures;
  StorageTable& table;  // by tasks in the mailbox only
};

class QueuedCall {
 public:
  // On the dispatch thread, with the frame's arguments pushed. Where results are known their storages are bound here,
  // and out= tensors get the size that they will have. Throws what allocation throws, and has bound nothing then.
  QueuedCall(CallSite site, const vendor::Call& call, std::shared_ptr<PreparedCall> prepared, CallFrame frame,
             bool synchronous);

  void answer_to(std::unique_ptr<vendor::Responder> responder) { responder_ = std::move(responder); }

  // On the stream's thread, once: computes, then answers or tells the host.
  void run() noexcept;

 private:
  void bind_expected(const vendor::Call& call);
  void compute();
  void finish();
  void finish_synchronous(const CallInputs& inputs);
  void fail(std::shared_ptr<const Failure> failure);

  const CallSite site_;
  const std::shared_ptr<PreparedCall> prepared_;
  CallFrame frame_;
  const bool synchronous_;
  const uint64_t failures_before_;
  const uint64_t sequence_;
  const uint16_t stream_;
  const uint8_t device_;
  std::vector<uint32_t> input_handles_;
  std::vector<uint32_t> output_handles_;
  std::vector<c10::Storage> inputs_;  // as the handles meant them at dispatch
  std::vector<c10::Storage> bound_;   // asynchronous: of output_handles_
  std::unique_ptr<vendor::Responder> responder_;
};

}  // namespace flagos::torch_host
