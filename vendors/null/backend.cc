// SPDX-License-Identifier: Apache-2.0
#include "vendors/null/backend.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "proto/routing/check.h"
#include "proto/shm/futex.h"
#include "proto/wire/definitions.h"
#include "vendors/null/operators.h"
#include "vendors/null/outcome.h"

namespace flagos::null {
namespace {

// Without taking the processor from others for all of it: a device would not.
void KeepBusy(uint64_t nanoseconds) {
  constexpr uint64_t kSpin = 100'000;  // nanoseconds before the end: who sleeps comes back late
  const uint64_t end = MonotonicNanoseconds() + nanoseconds;
  if (nanoseconds > kSpin) std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds - kSpin));
  while (MonotonicNanoseconds() < end) CpuRelax();
}

}  // namespace

NullBackend::NullBackend(vendor::Host& host, uint32_t device_count, uint64_t kernel_ns)
    : host_(host), kernel_ns_(kernel_ns), ledger_(host, device_count), generators_(device_count) {}

std::vector<std::string> NullBackend::operators() { return OperatorNames(); }

bool NullBackend::has_operator(const std::string& name) { return HasOperator(name); }

Error NullBackend::define_operator(uint32_t op, const OperatorDefinition& definition) {
  const std::string name = FullOperatorName(definition.name, definition.overload);
  if (!has_operator(name)) {
    return MakeError(ErrorCode::kNotImplemented,
                     "vendor null has no operator " + name + "; run it on the CPU, or use a vendor that computes");
  }
  if (!definition.library.empty() && definition.library != kNativeKernels) {
    return NoSuchLibrary(name, definition.library, {});
  }
  if (op >= operators_.size()) operators_.resize(op + 1);
  operators_[op] = definition;
  return Error::Ok();
}

Error NullBackend::define_context(uint32_t, const ContextState&) { return Error::Ok(); }

Error NullBackend::define_signature(uint32_t signature, Signature definition) {
  if (definition.op >= operators_.size() || !operators_[definition.op]) {
    return MakeError(ErrorCode::kNotFound, "signature " + std::to_string(signature) + " is of operator " +
                                               std::to_string(definition.op) + ", which was not defined");
  }
  if (definition.sparse) {
    return MakeError(ErrorCode::kNotImplemented,
                     "vendor null has no sparse tensors; call .to_dense() before, or use a vendor that computes");
  }
  const Outcome outcome = PlausibleOutcome(*operators_[definition.op], definition);
  Plan plan;
  plan.defined = true;
  const auto add = [&](const Output& output) {
    if (output.tag == OutputTag::kTensor) plan.outputs.push_back({output.storage_bytes, output.geometry.device});
  };
  for (const Output& output : outcome.outputs) {
    add(output);
    for (const Output& item : output.list) add(item);
  }
  for (const Resized& resized : outcome.resized) {
    plan.resized.push_back({resized.input, resized.geometry.device, resized.storage_bytes});
  }
  ByteWriter reply;
  EncodeOutcome(reply, outcome);
  plan.reply.assign(reply.bytes().begin(), reply.bytes().end());
  if (signature >= plans_.size()) plans_.resize(std::max<size_t>(signature + 1, plans_.size() * 2));
  plans_[signature] = std::move(plan);
  return Error::Ok();
}

void NullBackend::drop_signature(uint32_t signature) {
  if (signature < plans_.size()) plans_[signature] = Plan{};
}

void NullBackend::call(const vendor::Call& call, std::unique_ptr<vendor::Responder> responder) {
  const Plan* plan = nullptr;
  const Error error = run(call, plan);
  if (error.ok()) [[likely]] {
    if (kernel_ns_ != 0) [[unlikely]]
      KeepBusy(kernel_ns_);
    if (responder) responder->respond(error, {}, plan->reply);
    return;
  }
  for (const uint32_t handle : call.outputs) poison(handle, error);
  if (responder) {
    responder->respond(error, {}, {});
  } else {
    host_.fail(call.sequence, error);
  }
}

Error NullBackend::run(const vendor::Call& call, const Plan*& plan) {
  if (call.signature >= plans_.size() || !plans_[call.signature].defined) {
    return MakeError(ErrorCode::kNotFound,
                     "signature " + std::to_string(call.signature) + " was refused or never defined");
  }
  plan = &plans_[call.signature];
  if (call.outputs.size() < plan->outputs.size()) {
    return MakeError(ErrorCode::kMalformed, "a call offers " + std::to_string(call.outputs.size()) + " handles for " +
                                                std::to_string(plan->outputs.size()) + " results");
  }
  if (!poisoned_.empty()) {
    if (Error error = check_inputs(call); !error.ok()) return error;
    for (const uint32_t handle : call.outputs) poisoned_.erase(handle);
  }
  for (size_t i = 0; i < plan->outputs.size(); ++i) {
    const NewStorage& storage = plan->outputs[i];
    if (Error error = ledger_.bind(call.outputs[i], storage.bytes, storage.device); !error.ok()) return error;
  }
  for (const ResizedInput& resized : plan->resized) {
    if (Error error = ledger_.bind(call.inputs[resized.input], resized.bytes, resized.device); !error.ok()) {
      return error;
    }
  }
  return Error::Ok();
}

// Handles that a failed call should have made raise its error, until something else makes them anew.
Error NullBackend::check_inputs(const vendor::Call& call) const {
  for (const uint32_t handle : call.inputs) {
    if (const auto found = poisoned_.find(handle); found != poisoned_.end()) return found->second;
  }
  return Error::Ok();
}

void NullBackend::poison(uint32_t handle, const Error& error) {
  ledger_.release(handle);
  if (handle != 0) poisoned_.insert_or_assign(handle, error);
}

Error NullBackend::allocate(uint32_t handle, uint64_t bytes, uint8_t device, uint16_t) {
  Error error = ledger_.bind(handle, bytes, device);
  if (!error.ok()) {
    poison(handle, error);
  } else if (!poisoned_.empty()) {
    poisoned_.erase(handle);
  }
  return error;
}

void NullBackend::free(uint32_t handle, uint16_t) {
  ledger_.release(handle);
  if (!poisoned_.empty()) poisoned_.erase(handle);
}

void NullBackend::fence(uint16_t, uint8_t, std::function<void(const Error&)> done) { done(Error::Ok()); }

Error NullBackend::record_event(uint32_t event, uint16_t, bool, std::function<void(const Error&)> done) {
  events_[event] = MonotonicNanoseconds();
  done(Error::Ok());
  return Error::Ok();
}

void NullBackend::elapsed_time(uint32_t first, uint32_t second, std::unique_ptr<vendor::Responder> responder) {
  const auto from = events_.find(first);
  const auto to = events_.find(second);
  if (from == events_.end() || to == events_.end()) {
    responder->respond(MakeError(ErrorCode::kRuntime, "Both events must be recorded before calculating elapsed time."),
                       {}, {});
    return;
  }
  const double milliseconds = (static_cast<double>(to->second) - static_cast<double>(from->second)) / 1e6;
  responder->respond(Error::Ok(), {}, std::as_bytes(std::span(&milliseconds, 1)));
}

}  // namespace flagos::null
