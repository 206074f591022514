// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/queued_call.h"

#include <utility>

#include "proto/wire/bytes.h"
#include "vendors/torch/outcomes.h"
#include "vendors/torch/tensors.h"
#include "vendors/torch/thread_scope.h"

namespace flagos::torch_host {

QueuedCall::QueuedCall(CallSite site, const vendor::Call& call, std::shared_ptr<PreparedCall> prepared, CallFrame frame,
                       bool synchronous)
    : site_(site),
      prepared_(std::move(prepared)),
      frame_(std::move(frame)),
      synchronous_(synchronous),
      failures_before_(site.failures.count()),
      sequence_(call.sequence),
      stream_(call.stream),
      device_(call.device),
      input_handles_(call.inputs.begin(), call.inputs.end()),
      output_handles_(call.outputs.begin(), call.outputs.end()) {
  for (const uint32_t handle : input_handles_) inputs_.push_back(site_.table.get(handle));
  if (!synchronous) bind_expected(call);
}

void QueuedCall::bind_expected(const vendor::Call& call) {
  const auto reserve = [&](const Output& output) {
    if (output.tag != OutputTag::kTensor) return;
    bound_.push_back(site_.runtime.allocate(output.storage_bytes, call.device, call.stream));
  };
  for (const Output& output : prepared_->expected->outputs) {
    reserve(output);
    for (const Output& item : output.list) reserve(item);
  }
  std::vector<c10::Storage> resized;
  for (const Resized& item : prepared_->expected->resized) {
    resized.push_back(site_.runtime.allocate(item.storage_bytes, call.device, call.stream));
  }
  for (size_t i = 0; i < bound_.size(); ++i) site_.table.bind(output_handles_[i], bound_[i]);
  for (size_t i = 0; i < resized.size(); ++i) {
    const Resized& item = prepared_->expected->resized[i];
    for (size_t k = 0; k < frame_.resizable.size(); ++k) {
      if (prepared_->tensors[prepared_->resizable[k]].input != item.input) continue;
      const at::Tensor& tensor = frame_.resizable[k];
      StorageOf(tensor) = resized[i];
      tensor.unsafeGetTensorImpl()->set_sizes_and_strides(item.geometry.sizes, item.geometry.strides,
                                                          item.geometry.offset);
    }
    site_.table.bind(input_handles_[item.input], resized[i]);
  }
}

void QueuedCall::run() noexcept {
  ThreadScope& scope = ThreadScope::Enter();
  try {
    compute();
    finish();
  } catch (...) {
    fail(CurrentFailure(sequence_));
  }
  frame_.clear();
  if (!scope.warnings().empty()) site_.host.warn(scope.warnings().take());
}

void QueuedCall::compute() {
  site_.failures.check(inputs_);
  if (synchronous_) site_.failures.throw_since(failures_before_);
  site_.runtime.enter(device_, stream_);
  const auto held =
      prepared_->op->draws_unasked ? site_.runtime.hold_default_generator(device_) : std::shared_ptr<void>();
  RunKernel(*prepared_, frame_, site_.runtime.dispatch_key());
  CheckWritten(*prepared_, frame_);
}

void QueuedCall::finish() {
  const auto input = [this](size_t i) -> const c10::StorageImpl* { return inputs_[i].unsafeGetStorageImpl(); };
  const CallInputs inputs{
      input, inputs_.size(), site_.host.arena(), device_, site_.runtime.device(device_), site_.runtime.dispatch_key()};
  if (synchronous_) return finish_synchronous(inputs);
  const auto allocate = [this](uint64_t bytes) { return site_.runtime.allocate(bytes, device_, stream_); };
  // Out= tensors had the expected size from the start.
  const auto unresized = [&](const ResizedInput& now) {
    for (const Resized& item : prepared_->expected->resized) {
      if (item.input == now.resized.input) return item.geometry == now.resized.geometry;
    }
    return false;
  };
  for (const ResizedInput& now : DescribeResized(*prepared_, frame_, device_)) {
    if (!unresized(now)) CheckResized(*prepared_, {now, now});
  }
  std::vector<c10::Storage> storages;
  if (!Adapt(*prepared_, frame_, inputs, allocate, bound_, storages)) site_.host.count_misprediction();
}

// The client learns of handles and sizes by the answer, so the table has to know them before anything that follows it.
void QueuedCall::finish_synchronous(const CallInputs& inputs) {
  const auto allocate = [this](uint64_t bytes) { return site_.runtime.allocate(bytes, device_, stream_); };
  auto settled = std::make_shared<Settled>(SettleSynchronous(*prepared_, frame_, inputs, allocate));
  CheckHandles(*prepared_, *settled, input_handles_, output_handles_);
  if (!settled->as_predicted) site_.host.count_misprediction();
  ByteWriter body;
  EncodeOutcome(body, settled->results.outcome);
  site_.mailbox.post(
      [table = &site_.table, prepared = prepared_, settled, handles = output_handles_, inputs = input_handles_] {
        for (size_t i = 0; i < settled->results.storages.size(); ++i)
          table->bind(handles[i], settled->results.storages[i]);
        for (const ResizedInput& item : settled->resized) table->bind(inputs[item.resized.input], item.storage);
        Remember(*prepared, settled->results.outcome);
      });
  const std::vector<Warning> warnings = ThreadScope::Enter().warnings().take();
  responder_->respond(Error::Ok(), warnings, body.bytes());
}

void QueuedCall::fail(std::shared_ptr<const Failure> failure) {
  if (synchronous_) {
    const std::vector<Warning> warnings = ThreadScope::Enter().warnings().take();
    responder_->respond(failure->error, warnings, {});
    return;
  }
  // Results, and what the call should have written and now holds what no program asked for.
  std::vector<c10::Storage> unfilled = bound_;
  std::vector<uint32_t> handles(output_handles_.begin(),
                                output_handles_.begin() + static_cast<ptrdiff_t>(bound_.size()));
  for (const uint32_t number : prepared_->written) {
    const uint32_t input = prepared_->tensors[number].input;
    unfilled.push_back(inputs_[input]);
    handles.push_back(input_handles_[input]);
  }
  site_.mailbox.post([table = &site_.table, failure, handles, unfilled] {
    for (size_t i = 0; i < unfilled.size(); ++i) {
      if (table->holds(handles[i], unfilled[i].unsafeGetStorageImpl())) table->poison(handles[i], failure);
    }
  });
  site_.failures.add(unfilled, failure);
  site_.host.fail(failure->sequence != 0 ? failure->sequence : sequence_, failure->error);
}

}  // namespace flagos::torch_host
