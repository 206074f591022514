// SPDX-License-Identifier: Apache-2.0
// What differs between the devices that libtorch can host: memory, streams, events, generators. Everything else about
// running calls is shared (backend.h). vendors/cpu is the reference.
//
// One is made for a session; it keeps the figures of the session's vendor::Host current, and heeds its quota.
//
// Threads: called from the dispatch thread only, except enter(), hold_default_generator() and what allocate() returned,
// which threads of queued streams use as well. Methods without an Error result may throw c10::Error.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "proto/wire/error.h"
#include "proto/wire/records.h"
#include "vendors/interface/vendor.h"

namespace flagos::torch_host {

using Done = std::function<void(const Error&)>;

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  virtual c10::DispatchKey dispatch_key() const = 0;
  virtual uint32_t device_count() const = 0;
  // A session's device as kernels see it.
  virtual c10::Device device(uint8_t index) const = 0;

  // Makes the device and the stream current for the calling thread: kernels run there and allocate there.
  virtual void enter(uint8_t device, uint16_t stream) = 0;

  // New memory, uninitialised, resizable by kernels. Throws c10::OutOfMemoryError with the figures in its text. Zero
  // bytes are a storage too. What kernels allocate by themselves comes from the same pool.
  virtual c10::Storage allocate(uint64_t bytes, uint8_t device, uint16_t stream) = 0;
  // A call is going to use these bytes of the arena: for a device that has to know them.
  virtual void use_arena(std::span<std::byte> bytes) { static_cast<void>(bytes); }
  virtual MemoryStats memory_stats(uint8_t device) = 0;
  // What an error about the device's memory is to say besides PyTorch's own words; often empty.
  virtual std::string memory_text(uint8_t device) {
    static_cast<void>(device);
    return {};
  }
  virtual void empty_cache(uint8_t device) = 0;
  virtual void reset_peak_memory(uint8_t device) = 0;

  // As Backend::export_memory and import_memory. REQUIRES, for share(), that nothing uses the storage: drain().
  virtual Result<vendor::SharedMemory> share(c10::StorageImpl& storage, uint8_t device) = 0;
  virtual Result<c10::Storage> adopt(vendor::SharedMemory memory, uint8_t device) = 0;

  virtual Error create_stream(uint16_t stream, uint8_t device, int32_t priority) = 0;
  // The device of a default or created stream; -1 for any other number.
  virtual int stream_device(uint16_t stream) const = 0;
  // False: the dispatch thread itself runs or launches the stream's calls, because that does not wait (a device with
  // queues of its own; the CPU's default streams while they are idle). True: enqueue() takes them.
  virtual bool queued(uint16_t stream) const = 0;
  // Runs `work` in the stream's order on a thread of the stream. REQUIRES queued(stream).
  virtual void enqueue(uint16_t stream, std::function<void()> work) = 0;
  // True once any stream may be queued: from then on calls of two threads can meet at one storage.
  virtual bool concurrent() const = 0;
  // Waits until nothing is queued: for what changes every stream at once and happens rarely.
  virtual void drain() = 0;
  // After a failure: the error that says why this process can use its devices no more; Ok where it can.
  virtual Error lost() { return Error::Ok(); }

  // As in vendor::Backend.
  virtual void fence(uint16_t stream, uint8_t device, Done done) = 0;
  virtual Error record_event(uint32_t event, uint16_t stream, bool timing, Done done) = 0;
  virtual Error wait_event(uint32_t event, uint16_t stream) = 0;
  virtual void destroy_event(uint32_t event) = 0;
  virtual void elapsed_time(uint32_t first, uint32_t second, std::function<void(Result<double>)> done) = 0;

  // The device's default generator, which also serves the kernels that are given none, and new ones.
  virtual at::Generator default_generator(uint8_t device) = 0;
  virtual at::Generator make_generator(uint8_t device) = 0;
  // For a call of an operator that draws without a Generator argument: until the result is destroyed, the device's
  // default generator is the one that the kernel finds. May be null.
  virtual std::shared_ptr<void> hold_default_generator(uint8_t device) = 0;

  // Sets what is the vendor's own in the context (backends' precision flags); the rest is common. REQUIRES an idle
  // device.
  virtual void apply_context(const ContextState& state) = 0;
};

}  // namespace flagos::torch_host
