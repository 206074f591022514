// SPDX-License-Identifier: Apache-2.0
// What a vendor gives an executor. A vendor is a shared library, build/vendors/NAME/libflagos_NAME.so, that exports
// flagos_vendor(); the executor loads it and nothing else knows it. vendors/null shows the whole interface in use.
//
// Threads: the executor calls a Backend from its dispatch thread only, in the session's order. A Backend must not wait
// for the device there: what takes time goes to a queue of its own and is told by Responder, Completion and Host, which
// are thread safe. Nothing here throws: a vendor turns its library's exceptions into Error.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proto/shm/layout.h"
#include "proto/shm/lease_memory.h"
#include "proto/wire/attach.h"
#include "proto/wire/definitions.h"
#include "proto/wire/error.h"
#include "proto/wire/kernels.h"
#include "proto/wire/records.h"
#include "proto/wire/reply.h"
#include "proto/wire/signature.h"
#include "vendors/interface/shared_memory.h"

namespace flagos::vendor {

inline constexpr uint32_t kInterfaceVersion = 1;

// How an executor was started.
struct Options {
  std::vector<uint32_t> devices;              // of the node, which the session sees as 0, 1, ...; empty: all
  std::map<std::string, std::string> values;  // vendor's own, from flagosd's configuration: {"devices", "4"}
};

// Answers one SYNC record, once. Destroyed unused, it answers kInternal: no client waits for ever.
class Responder {
 public:
  virtual ~Responder() = default;
  // `body` is what the record's kind says (records.h); ignored where `error` is not ok.
  virtual void respond(const Error& error, std::span<const Warning> warnings, std::span<const std::byte> body) = 0;
};

// What the executor offers to a vendor.
class Host {
 public:
  virtual ~Host() = default;
  // A NOTIFY record of this stream, and all before it on the stream, is complete.
  virtual void complete(uint16_t stream, uint64_t sequence) = 0;
  // An asynchronous record failed. The first failure is told at the next synchronising point.
  virtual void fail(uint64_t sequence, const Error& error) = 0;
  // The device is of no more use to this process, as after an illegal address in a kernel: the session ends once the
  // running record is done, and the client is told what `error` says. The first one stands. Returns the error with what
  // is known about its cause added, for records that fail with it.
  virtual Error device_failed(const Error& error) = 0;
  // Warnings of an asynchronous record; told with the next reply.
  virtual void warn(std::vector<Warning> warnings) = 0;
  // An asynchronous call's result was not what the client predicted, and was made to fit.
  virtual void count_misprediction() = 0;
  // Bytes shared with the client, which may write them at any time.
  virtual std::span<std::byte> arena() const = 0;
  // From now on no page of the arena is given back to the kernel: for a vendor whose device copies by itself, from and
  // to pages that it knows by their place in memory. Before the session's first call.
  virtual void keep_arena_in_place() {}
  // Figures of a session's device, for the vendor to keep current. `total_bytes` is set already.
  virtual DeviceFigures& figures(uint32_t device) = 0;
  // The session's share of its lease's memory ledger, to which the vendor's allocator charges what it is about to take
  // from a device, cached or not, and gives back what it has returned; null: nobody counts. It is there as long as the
  // process.
  virtual LeaseAccount* memory() { return nullptr; }
};

struct Call {
  uint32_t signature;
  std::span<const uint32_t> inputs;   // handles; counts checked against the signature by the executor
  std::span<const uint32_t> outputs;  // handles for new storages, in order
  std::span<const std::byte> free_bytes;
  uint64_t sequence;
  uint16_t stream;
  uint8_t device;
};

// The calls of one session. Numbers (operators, signatures, handles ...) are bounded by proto/wire/types.h and checked
// by the executor for that bound only; a number that was never defined is the backend's to refuse, without harm.
class Backend {
 public:
  virtual ~Backend() = default;

  // Operators with a native kernel, as "aten::add.Tensor".
  virtual std::vector<std::string> operators() = 0;
  virtual bool has_operator(const std::string& name) = 0;

  // Fails where `definition` names a kernel library that is not there (kernel_libraries()), or the operator may not
  // have one; a library without a kernel for the operator leaves its calls to the vendor's own.
  virtual Error define_operator(uint32_t op, const OperatorDefinition& definition) = 0;
  virtual Error define_context(uint32_t context, const ContextState& state) = 0;
  virtual Error define_signature(uint32_t signature, Signature definition) = 0;
  virtual void drop_signature(uint32_t signature) = 0;

  // Runs or queues a call. `responder` is null for an asynchronous call, whose failure goes to Host::fail. A
  // synchronous call is answered with an Outcome; handles in `outputs` beyond what it needs stay unused. A call that
  // reads a handle whose producer failed fails with the producer's error.
  virtual void call(const Call& call, std::unique_ptr<Responder> responder) = 0;

  virtual Error allocate(uint32_t handle, uint64_t bytes, uint8_t device, uint16_t stream) = 0;
  // A handle that is not bound is ignored.
  virtual void free(uint32_t handle, uint16_t stream) = 0;
  virtual Result<MemoryStats> memory_stats(uint8_t device) = 0;
  // Peaks count from what is live now.
  virtual void reset_peak_memory(uint8_t device) { static_cast<void>(device); }
  virtual void empty_cache(uint8_t device) = 0;

  // The memory of a handle's storage for another session, after all that was called so far: this may wait for it. The
  // storage stays usable, and is not resized any more.
  virtual Result<SharedMemory> export_memory(uint32_t handle, uint8_t device) {
    static_cast<void>(handle), static_cast<void>(device);
    return NoSharing();
  }
  // Binds the handle to memory that a session exported; `memory` is the peers' word, not to be trusted.
  virtual Error import_memory(uint32_t handle, SharedMemory memory, uint8_t device) {
    static_cast<void>(handle), static_cast<void>(memory), static_cast<void>(device);
    return NoSharing();
  }

  virtual Error create_stream(uint16_t stream, uint8_t device, int32_t priority) = 0;
  // `done` is called once, from any thread, after all that was queued on the stream (kAllStreams: on the device).
  virtual void fence(uint16_t stream, uint8_t device, std::function<void(const Error&)> done) = 0;
  // `done` as above, once the event has happened.
  virtual Error record_event(uint32_t event, uint16_t stream, bool timing, std::function<void(const Error&)> done) = 0;
  // A never recorded event counts as happened.
  virtual Error wait_event(uint32_t event, uint16_t stream) = 0;
  virtual void destroy_event(uint32_t event) = 0;
  // Milliseconds between two recorded events; answers the responder when both have happened.
  virtual void elapsed_time(uint32_t first, uint32_t second, std::unique_ptr<Responder> responder) = 0;

  // What there is besides the vendor's own kernels, which library runs a signature's calls (empty: its definition was
  // refused), and what libraries ran so far.
  virtual std::vector<KernelLibraryInfo> kernel_libraries() { return {}; }
  virtual std::string kernel_of(uint32_t signature) {
    static_cast<void>(signature);
    return std::string(kNativeKernels);
  }
  virtual std::vector<KernelFigures> kernel_figures() { return {}; }

  virtual Error create_generator(uint32_t generator, uint8_t device) = 0;
  virtual void destroy_generator(uint32_t generator) = 0;
  virtual Error seed_generator(uint32_t generator, uint64_t seed) = 0;
  virtual Result<std::vector<std::byte>> generator_state(uint32_t generator) = 0;
  virtual Error set_generator_state(uint32_t generator, std::span<const std::byte> state) = 0;

 protected:
  static Error NoSharing() {
    return MakeError(ErrorCode::kNotImplemented,
                     "this vendor's memory cannot be shared with another process; send a copy: tensor.cpu()");
  }
};

class Vendor {
 public:
  virtual ~Vendor() = default;
  virtual const char* name() const = 0;
  // Version of the libtorch that it hosts; empty if none.
  virtual std::string torch_version() const = 0;
  // Makes the devices ready (contexts, libraries) and describes them in the order of Options::devices. Called once.
  virtual Result<std::vector<DeviceRecord>> start(const Options& options) = 0;
  // Opens the one session of this process.
  virtual Result<std::unique_ptr<Backend>> open(Host& host) = 0;
};

// The exported symbol: extern "C" flagos::vendor::Entry flagos_vendor();
struct Entry {
  uint32_t interface_version;  // kInterfaceVersion
  Vendor* (*create)();
};
inline constexpr const char* kEntrySymbol = "flagos_vendor";

}  // namespace flagos::vendor

// The one line of registration in a vendor's folder. (A type cannot stand in parentheses.)
#define FLAGOS_REGISTER_VENDOR(Type)                                                                          \
  extern "C" __attribute__((visibility("default"))) ::flagos::vendor::Entry flagos_vendor() {                 \
    return {::flagos::vendor::kInterfaceVersion,                                                              \
            []() -> ::flagos::vendor::Vendor* { return new Type; }}; /* NOLINT(bugprone-macro-parentheses) */ \
  }
