// SPDX-License-Identifier: Apache-2.0
// The hot path of TorchBackend: one call, on the dispatch thread.
#include <string>
#include <utility>

#include "vendors/torch/backend.h"
#include "vendors/torch/outcomes.h"
#include "vendors/torch/thread_scope.h"

namespace flagos::torch_host {
namespace {

// Clears the frame and takes lent tensors back, whatever way a call ends.
class Lent {
 public:
  Lent(PreparedCall& prepared, CallFrame& frame) : prepared_(prepared), frame_(frame) {}
  ~Lent() {
    frame_.clear();
    Arguments::take_back(prepared_);
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  PreparedCall& prepared_;
  CallFrame& frame_;
};

}  // namespace

void TorchBackend::call(const vendor::Call& call, std::unique_ptr<vendor::Responder> responder) {
  try {
    if (scope_ == nullptr) [[unlikely]]
      scope_ = &ThreadScope::Enter();
    mailbox_.open();
    const std::shared_ptr<PreparedCall>& prepared = this->prepared(call);
    if (!responder && (!prepared->expected || call.outputs.size() < prepared->output_handles)) [[unlikely]] {
      throw Refusal(ErrorCode::kMalformed, "an asynchronous call of " + prepared->op->name +
                                               " came before its results were known, or with too few handles");
    }
    contexts_.enter(prepared->context);
    if (runtime_->queued(call.stream)) [[unlikely]]
      return queue(call, prepared, responder);
    run(call, *prepared, responder);
  } catch (...) {
    fail(call, CurrentFailure(call.sequence), responder.get());
  }
  if (!scope_->warnings().empty()) [[unlikely]]
    host_.warn(scope_->warnings().take());
}

const std::shared_ptr<PreparedCall>& TorchBackend::prepared(const vendor::Call& call) const {
  if (call.signature >= signatures_.size() || !signatures_[call.signature].value) [[unlikely]] {
    if (call.signature < signatures_.size() && !signatures_[call.signature].error.ok()) {
      throw Refusal(signatures_[call.signature].error);
    }
    throw Refusal(ErrorCode::kMalformed, "signature " + std::to_string(call.signature) + " is called but not defined");
  }
  const std::shared_ptr<PreparedCall>& prepared = signatures_[call.signature].value;
  if (call.inputs.size() != prepared->inputs || call.free_bytes.size() != prepared->free_bytes ||
      runtime_->stream_device(call.stream) != call.device) [[unlikely]] {
    throw Refusal(ErrorCode::kMalformed,
                  "a call of " + prepared->op->name + " does not fit its signature or its stream");
  }
  return prepared;
}

void TorchBackend::run(const vendor::Call& call, PreparedCall& prepared,
                       std::unique_ptr<vendor::Responder>& responder) {
  const Lent lent(prepared, frame_);
  runtime_->enter(call.device, call.stream);
  arguments_.push(prepared, call, frame_, /*lend=*/true);
  {
    const auto held =
        prepared.op->draws_unasked ? runtime_->hold_default_generator(call.device) : std::shared_ptr<void>();
    RunKernel(prepared, frame_, key_);
  }
  CheckWritten(prepared, frame_);
  const auto input = [&](size_t i) -> const c10::StorageImpl* {
    return table_.get(call.inputs[i]).unsafeGetStorageImpl();
  };
  const CallInputs inputs{input, call.inputs.size(), host_.arena(), call.device, runtime_->device(call.device), key_};
  if (responder == nullptr) {
    finish_asynchronous(call, prepared, inputs);
  } else {
    finish_synchronous(call, prepared, inputs, responder);
  }
}

void TorchBackend::finish_asynchronous(const vendor::Call& call, PreparedCall& prepared, const CallInputs& inputs) {
  const auto allocate = [&](uint64_t bytes) { return runtime_->allocate(bytes, call.device, call.stream); };
  storages_.clear();
  const bool as_expected = Adapt(prepared, frame_, inputs, allocate, {}, storages_);
  if (!prepared.resizable.empty()) {
    const auto resized = DescribeResized(prepared, frame_, call.device);
    CheckResized(prepared, resized);
    for (const ResizedInput& item : resized) table_.bind(call.inputs[item.resized.input], item.storage);
  }
  if (!as_expected) [[unlikely]]
    host_.count_misprediction();
  for (size_t i = 0; i < storages_.size(); ++i) table_.bind(call.outputs[i], std::move(storages_[i]));
}

void TorchBackend::finish_synchronous(const vendor::Call& call, PreparedCall& prepared, const CallInputs& inputs,
                                      std::unique_ptr<vendor::Responder>& responder) {
  const auto allocate = [&](uint64_t bytes) { return runtime_->allocate(bytes, call.device, call.stream); };
  const Settled settled = SettleSynchronous(prepared, frame_, inputs, allocate);
  CheckHandles(prepared, settled, call.inputs, call.outputs);
  if (!settled.as_predicted) host_.count_misprediction();
  for (size_t i = 0; i < settled.results.storages.size(); ++i)
    table_.bind(call.outputs[i], settled.results.storages[i]);
  for (const ResizedInput& item : settled.resized) table_.bind(call.inputs[item.resized.input], item.storage);
  Remember(prepared, settled.results.outcome);
  reply_.clear();
  EncodeOutcome(reply_, settled.results.outcome);
  if (prepared.uses_arena) [[unlikely]]
    return respond_when_done(call, std::move(responder));
  responder->respond(Error::Ok(), scope_->warnings().take(), reply_.bytes());
}

// The client reads or reuses its side of a copy as soon as it has the answer.
void TorchBackend::respond_when_done(const vendor::Call& call, std::unique_ptr<vendor::Responder> responder) {
  const auto bytes = reply_.bytes();
  runtime_->fence(call.stream, call.device,
                  [responder = std::shared_ptr<vendor::Responder>(std::move(responder)),
                   warnings = scope_->warnings().take(), reply = std::vector<std::byte>(bytes.begin(), bytes.end())](
                      const Error& error) { responder->respond(error, warnings, reply); });
}

void TorchBackend::queue(const vendor::Call& call, const std::shared_ptr<PreparedCall>& prepared,
                         std::unique_ptr<vendor::Responder>& responder) {
  CallFrame frame;
  arguments_.push(*prepared, call, frame, /*lend=*/false);
  const auto queued = std::make_shared<QueuedCall>(CallSite{*runtime_, host_, mailbox_, queued_failures_, table_}, call,
                                                   prepared, std::move(frame), responder != nullptr);
  queued->answer_to(std::move(responder));
  runtime_->enqueue(call.stream, [queued] { queued->run(); });
}

void TorchBackend::fail(const vendor::Call& call, std::shared_ptr<const Failure> failure,
                        vendor::Responder* responder) {
  if (const Error lost = runtime_->lost(); !lost.ok()) {
    failure = std::make_shared<const Failure>(Failure{host_.device_failed(lost), failure->sequence});
  }
  if (failure->error.code == ErrorCode::kOutOfMemory) {
    failure = std::make_shared<const Failure>(Failure{with_memory(failure->error, call.device), failure->sequence});
  }
  if (responder != nullptr) {
    const std::vector<Warning> warnings = scope_->warnings().take();
    responder->respond(failure->error, warnings, {});
    return;
  }
  for (const uint32_t handle : call.outputs) table_.poison(handle, failure);
  // What it should have written holds now what no program asked for.
  if (call.signature < signatures_.size() && signatures_[call.signature].value) {
    const PreparedCall& prepared = *signatures_[call.signature].value;
    for (const uint32_t number : prepared.written) {
      const uint32_t input = prepared.tensors[number].input;
      if (input < call.inputs.size()) table_.poison(call.inputs[input], failure);
    }
  }
  host_.fail(failure->sequence != 0 ? failure->sequence : call.sequence, failure->error);
}

}  // namespace flagos::torch_host
