// SPDX-License-Identifier: Apache-2.0
// vendor::Backend for every vendor that hosts libtorch, over its DeviceRuntime.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proto/wire/bytes.h"
#include "vendors/interface/vendor.h"
#include "vendors/torch/arguments.h"
#include "vendors/torch/contexts.h"
#include "vendors/torch/device_runtime.h"
#include "vendors/torch/generators.h"
#include "vendors/torch/kernel_routes.h"
#include "vendors/torch/mailbox.h"
#include "vendors/torch/queued_call.h"
#include "vendors/torch/storage_table.h"
#include "vendors/torch/thread_scope.h"

namespace flagos::torch_host {

// All on the dispatch thread, which it leaves in inference mode with warnings collected (thread_scope.h).
class TorchBackend final : public vendor::Backend {
 public:
  // `kernels` may be null: there are no kernel libraries.
  TorchBackend(vendor::Host& host, std::unique_ptr<DeviceRuntime> runtime,
               std::shared_ptr<KernelRoutes> kernels = nullptr);
  ~TorchBackend() override;

  std::vector<std::string> operators() override;
  bool has_operator(const std::string& name) override;

  Error define_operator(uint32_t op, const OperatorDefinition& definition) override;
  Error define_context(uint32_t context, const ContextState& state) override;
  Error define_signature(uint32_t signature, Signature definition) override;
  void drop_signature(uint32_t signature) override;

  void call(const vendor::Call& call, std::unique_ptr<vendor::Responder> responder) override;

  Error allocate(uint32_t handle, uint64_t bytes, uint8_t device, uint16_t stream) override;
  void free(uint32_t handle, uint16_t stream) override;
  Result<MemoryStats> memory_stats(uint8_t device) override;
  void empty_cache(uint8_t device) override;
  void reset_peak_memory(uint8_t device) override;
  Result<vendor::SharedMemory> export_memory(uint32_t handle, uint8_t device) override;
  Error import_memory(uint32_t handle, vendor::SharedMemory memory, uint8_t device) override;

  Error create_stream(uint16_t stream, uint8_t device, int32_t priority) override;
  void fence(uint16_t stream, uint8_t device, std::function<void(const Error&)> done) override;
  Error record_event(uint32_t event, uint16_t stream, bool timing, std::function<void(const Error&)> done) override;
  Error wait_event(uint32_t event, uint16_t stream) override;
  void destroy_event(uint32_t event) override;
  void elapsed_time(uint32_t first, uint32_t second, std::unique_ptr<vendor::Responder> responder) override;

  std::vector<KernelLibraryInfo> kernel_libraries() override;
  std::string kernel_of(uint32_t signature) override;
  std::vector<KernelFigures> kernel_figures() override;

  Error create_generator(uint32_t generator, uint8_t device) override;
  void destroy_generator(uint32_t generator) override;
  Error seed_generator(uint32_t generator, uint64_t seed) override;
  Result<std::vector<std::byte>> generator_state(uint32_t generator) override;
  Error set_generator_state(uint32_t generator, std::span<const std::byte> state) override;

 private:
  // What a number means. One that was refused keeps the reason, which every later use is told.
  template <class T>
  struct Defined {
    std::shared_ptr<T> value;
    Error error;
  };
  Error define(uint32_t signature, Signature definition);
  // Chooses the kernel library of an operator that is being defined.
  Error route(Operator& op, const std::string& asked);
  const std::shared_ptr<PreparedCall>& prepared(const vendor::Call& call) const;

  void run(const vendor::Call& call, PreparedCall& prepared, std::unique_ptr<vendor::Responder>& responder);
  void finish_asynchronous(const vendor::Call& call, PreparedCall& prepared, const CallInputs& inputs);
  void finish_synchronous(const vendor::Call& call, PreparedCall& prepared, const CallInputs& inputs,
                          std::unique_ptr<vendor::Responder>& responder);
  void respond_when_done(const vendor::Call& call, std::unique_ptr<vendor::Responder> responder);
  void queue(const vendor::Call& call, const std::shared_ptr<PreparedCall>& prepared,
             std::unique_ptr<vendor::Responder>& responder);
  // An error about memory with what the runtime has to add.
  Error with_memory(Error error, uint8_t device);
  void fail(const vendor::Call& call, std::shared_ptr<const Failure> failure, vendor::Responder* responder);
  // Runs `action` and turns what it throws into an Error.
  template <class Action>
  Error guarded(Action action) noexcept;

  vendor::Host& host_;
  const std::unique_ptr<DeviceRuntime> runtime_;
  const c10::DispatchKey key_;
  const std::shared_ptr<KernelRoutes> kernels_;
  StorageTable table_;
  Generators generators_;
  Contexts contexts_;
  Arguments arguments_;
  Mailbox mailbox_;
  QueuedFailures queued_failures_;
  std::vector<Defined<const Operator>> operators_;
  std::vector<Defined<PreparedCall>> signatures_;
  ThreadScope* scope_ = nullptr;  // of the dispatch thread, from its first call on
  // Of the running call; kept so that a steady caller allocates nothing.
  CallFrame frame_;
  std::vector<c10::Storage> storages_;
  ByteWriter reply_;
};

}  // namespace flagos::torch_host
