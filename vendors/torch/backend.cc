// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/backend.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "vendors/torch/operator.h"
#include "vendors/torch/thread_scope.h"

namespace flagos::torch_host {
namespace {

template <class T>
T& Grown(std::vector<T>& items, uint32_t index) {
  if (index >= items.size()) items.resize(std::max<size_t>(index + 1, items.size() * 2));
  return items[index];
}

}  // namespace

TorchBackend::TorchBackend(vendor::Host& host, std::unique_ptr<DeviceRuntime> runtime,
                           std::shared_ptr<KernelRoutes> kernels)
    : host_(host),
      runtime_(std::move(runtime)),
      key_(runtime_->dispatch_key()),
      kernels_(std::move(kernels)),
      table_(runtime_->allocate(0, 0, 0)),
      generators_(*runtime_),
      contexts_(*runtime_),
      arguments_(*runtime_, table_, generators_, host.arena()) {}

// What is queued uses everything here.
TorchBackend::~TorchBackend() { runtime_->drain(); }

template <class Action>
Error TorchBackend::guarded(Action action) noexcept {
  try {
    if (scope_ == nullptr) scope_ = &ThreadScope::Enter();
    mailbox_.open();
    action();
    return Error::Ok();
  } catch (...) {
    return CurrentError();
  }
}

std::vector<std::string> TorchBackend::operators() { return ListOperators(key_); }

bool TorchBackend::has_operator(const std::string& name) { return HasOperator(name, key_); }

Error TorchBackend::define_operator(uint32_t op, const OperatorDefinition& definition) {
  return guarded([&] {
    Defined<const Operator>& entry = Grown(operators_, op);
    auto found = FindOperator(definition, key_);
    if (Error error = found.ok() ? route(found.value(), definition.library) : found.error(); !error.ok()) {
      entry = {nullptr, error};
      throw Refusal(std::move(error));
    }
    entry = {std::make_shared<const Operator>(std::move(found).value()), Error::Ok()};
  });
}

Error TorchBackend::define_context(uint32_t context, const ContextState& state) {
  return guarded([&] { contexts_.define(context, state); });
}

Error TorchBackend::define_signature(uint32_t signature, Signature definition) {
  Error error = define(signature, std::move(definition));
  if (!error.ok()) Grown(signatures_, signature) = {nullptr, error};
  return error;
}

Error TorchBackend::define(uint32_t signature, Signature definition) {
  return guarded([&] {
    if (definition.op >= operators_.size() ||
        (!operators_[definition.op].value && operators_[definition.op].error.ok())) {
      throw Refusal(ErrorCode::kMalformed,
                    "a signature names operator " + std::to_string(definition.op) + ", which was never defined");
    }
    const Defined<const Operator>& op = operators_[definition.op];
    if (!op.value) throw Refusal(op.error);
    if (!contexts_.defined(definition.context)) {
      throw Refusal(ErrorCode::kMalformed,
                    "a signature names context " + std::to_string(definition.context) + ", which was never defined");
    }
    auto prepared = Prepare(std::move(definition), op.value, *runtime_);
    if (!prepared.ok()) throw Refusal(prepared.error());
    Grown(signatures_, signature) = {std::move(prepared).value(), Error::Ok()};
  });
}

void TorchBackend::drop_signature(uint32_t signature) {
  mailbox_.open();
  if (signature < signatures_.size()) signatures_[signature] = {};
}

Error TorchBackend::allocate(uint32_t handle, uint64_t bytes, uint8_t device, uint16_t stream) {
  Error error = guarded([&] { table_.bind(handle, runtime_->allocate(bytes, device, stream)); });
  if (error.code == ErrorCode::kOutOfMemory) error = with_memory(std::move(error), device);
  if (!error.ok()) table_.poison(handle, std::make_shared<const Failure>(Failure{error, 0}));
  return error;
}

Error TorchBackend::with_memory(Error error, uint8_t device) {
  const std::string more = runtime_->memory_text(device);
  if (!more.empty() && error.message.find(more) == std::string::npos) error.message += " (flagos: " + more + ")";
  return error;
}

void TorchBackend::free(uint32_t handle, uint16_t) {
  mailbox_.open();
  table_.release(handle);
}

Result<MemoryStats> TorchBackend::memory_stats(uint8_t device) { return runtime_->memory_stats(device); }

void TorchBackend::empty_cache(uint8_t device) { runtime_->empty_cache(device); }

void TorchBackend::reset_peak_memory(uint8_t device) { runtime_->reset_peak_memory(device); }

Result<vendor::SharedMemory> TorchBackend::export_memory(uint32_t handle, uint8_t device) {
  std::optional<vendor::SharedMemory> exported;
  const Error error = guarded([&] {
    runtime_->drain();
    const c10::Storage& storage = table_.get(handle);
    if (storage.nbytes() == 0) throw Refusal(MakeError(ErrorCode::kValue, "a storage without bytes cannot be shared"));
    auto shared = runtime_->share(*storage.unsafeGetStorageImpl(), device);
    if (!shared.ok()) throw Refusal(shared.error());
    exported = std::move(shared).value();
  });
  if (!error.ok()) return error;
  return std::move(*exported);
}

Error TorchBackend::import_memory(uint32_t handle, vendor::SharedMemory memory, uint8_t device) {
  return guarded([&] {
    auto storage = runtime_->adopt(std::move(memory), device);
    if (!storage.ok()) throw Refusal(storage.error());
    table_.bind(handle, std::move(storage).value());
  });
}

Error TorchBackend::create_stream(uint16_t stream, uint8_t device, int32_t priority) {
  return guarded([&] {
    if (Error error = runtime_->create_stream(stream, device, priority); !error.ok()) throw Refusal(std::move(error));
  });
}

void TorchBackend::fence(uint16_t stream, uint8_t device, std::function<void(const Error&)> done) {
  runtime_->fence(stream, device, std::move(done));
}

Error TorchBackend::record_event(uint32_t event, uint16_t stream, bool timing, std::function<void(const Error&)> done) {
  return runtime_->record_event(event, stream, timing, std::move(done));
}

Error TorchBackend::wait_event(uint32_t event, uint16_t stream) {
  return guarded([&] {
    if (Error error = runtime_->wait_event(event, stream); !error.ok()) throw Refusal(std::move(error));
  });
}

void TorchBackend::destroy_event(uint32_t event) { runtime_->destroy_event(event); }

void TorchBackend::elapsed_time(uint32_t first, uint32_t second, std::unique_ptr<vendor::Responder> responder) {
  const std::shared_ptr<vendor::Responder> answer = std::move(responder);
  runtime_->elapsed_time(first, second, [answer](const Result<double>& milliseconds) {
    if (!milliseconds.ok()) return answer->respond(milliseconds.error(), {}, {});
    answer->respond(Error::Ok(), {}, std::as_bytes(std::span(&milliseconds.value(), 1)));
  });
}

Error TorchBackend::create_generator(uint32_t generator, uint8_t device) {
  return guarded([&] { generators_.create(generator, device); });
}

void TorchBackend::destroy_generator(uint32_t generator) { generators_.destroy(generator); }

// The order of draws and seeds is that of the records, also where the draws are still queued.
Error TorchBackend::seed_generator(uint32_t generator, uint64_t seed) {
  return guarded([&] {
    runtime_->drain();
    generators_.seed(generator, seed);
  });
}

Result<std::vector<std::byte>> TorchBackend::generator_state(uint32_t generator) {
  std::vector<std::byte> state;
  Error error = guarded([&] {
    runtime_->drain();
    state = generators_.state(generator);
  });
  if (!error.ok()) return error;
  return state;
}

Error TorchBackend::set_generator_state(uint32_t generator, std::span<const std::byte> state) {
  return guarded([&] {
    runtime_->drain();
    generators_.set_state(generator, state);
  });
}

}  // namespace flagos::torch_host
