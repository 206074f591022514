// SPDX-License-Identifier: Apache-2.0
// Drives a vendor's Backend as an executor does, with a host that writes down what it is told.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "proto/wire/signature.h"
#include "vendors/interface/vendor.h"

namespace flagos::testing {

class RecordingHost final : public vendor::Host {
 public:
  void complete(uint16_t, uint64_t) override {}
  void fail(uint64_t sequence, const Error& error) override;
  Error device_failed(const Error& error) override { return error; }
  void warn(std::vector<Warning> warnings) override;
  void count_misprediction() override;
  std::span<std::byte> arena() const override { return {arena_, sizeof arena_}; }
  DeviceFigures& figures(uint32_t device) override { return figures_[device]; }
  LeaseAccount* memory() override { return account.get(); }

  struct Failed {
    uint64_t sequence;
    Error error;
  };
  std::vector<Failed> failures() const;
  std::vector<Warning> warnings() const;
  int mispredictions() const;

  std::unique_ptr<LeaseAccount> account;  // null: nobody counts

 private:
  mutable std::mutex mutex_;
  std::vector<Failed> failures_;   // GUARDED_BY(mutex_)
  std::vector<Warning> warnings_;  // GUARDED_BY(mutex_)
  int mispredictions_ = 0;         // GUARDED_BY(mutex_)
  std::array<DeviceFigures, kMaxDevices> figures_;
  alignas(64) mutable std::byte arena_[1 << 20];
};

// A tensor as the client knows it.
struct DeviceTensor {
  uint32_t handle = 0;
  Geometry geometry;
};

// An argument with what a call carries for it.
struct Value {
  Argument argument;
  std::vector<uint32_t> handles;
  std::vector<std::byte> free;
};

Value None();
Value Of(const DeviceTensor& tensor);
Value Scalar(int64_t value);
Value Scalar(double value);
Value Int(int64_t value);
Value Bool(bool value);
Value Real(double value);
Value Text(const std::string& value);
Value Ints(std::vector<int64_t> values);
Value DTypeOf(DType dtype);
Value List(const std::vector<DeviceTensor>& tensors);
Value OptionalList(const std::vector<std::optional<DeviceTensor>>& tensors);
Value HostScalar(const at::Tensor& tensor);
Value Inline(const at::Tensor& tensor);
// A host tensor of this geometry, at `offset` of the arena.
Value InArena(Geometry geometry, uint64_t offset, uint64_t length);
Value Generator(uint32_t number);

Geometry GeometryOfTensor(const at::Tensor& tensor);

struct Answer {
  Error error;
  std::vector<Warning> warnings;
  Outcome outcome;
  std::vector<DeviceTensor> tensors;  // the new ones, in order
};

class Driver {
 public:
  // `quota`: of the lease on each device, in bytes; 0: nobody counts.
  explicit Driver(vendor::Options options = {}, uint64_t quota = 0);
  ~Driver();

  // Uploads, downloads: aten::copy_ with a tensor in the arena, synchronously.
  DeviceTensor put(const at::Tensor& tensor, uint8_t device = 0);
  at::Tensor get(const DeviceTensor& tensor, uint16_t stream = 0);

  // A synchronous call; fails the test where it is not answered once. `name` as "aten::add.Tensor".
  Answer call(const std::string& name, const std::vector<Value>& values, uint16_t stream = 0);
  // An asynchronous call of a signature that was called before; `tensors` gets the results' handles.
  std::vector<DeviceTensor> send(const std::string& name, const std::vector<Value>& values, uint16_t stream = 0);
  // The same, with the outcome that a client predicted.
  std::vector<DeviceTensor> predict(const std::string& name, const std::vector<Value>& values, const Outcome& expected,
                                    uint16_t stream = 0);
  // Any call of a signature number, without looking; asynchronous.
  void raw(const vendor::Call& call);

  void use_context(const ContextState& state);
  // Waits for a stream.
  void wait(uint16_t stream);
  void free(const DeviceTensor& tensor) { backend().free(tensor.handle, 0); }
  uint32_t new_handle() { return next_handle_++; }
  uint32_t define(const std::string& name, const std::vector<Value>& values, const Outcome* expected,
                  Error* error = nullptr);

  vendor::Backend& backend() { return *backend_; }
  RecordingHost& host() { return *host_; }
  uint64_t sequence() const { return sequence_; }

 private:
  struct Known {
    uint32_t number;
    std::optional<Outcome> outcome;
  };
  uint8_t device_of(uint16_t stream) const;
  void run(uint32_t signature, const std::vector<Value>& values, const std::vector<uint32_t>& outputs, uint16_t stream,
           std::unique_ptr<vendor::Responder> responder);
  std::vector<DeviceTensor> bind(const Outcome& outcome, const std::vector<uint32_t>& handles) const;
  std::string key(const std::string& name, const std::vector<Value>& values, const Outcome* expected);

  std::unique_ptr<RecordingHost> host_;
  std::unique_ptr<vendor::Vendor> vendor_;
  std::unique_ptr<vendor::Backend> backend_;
  std::map<std::string, uint32_t> operators_;
  std::map<std::string, Known> signatures_;
  uint32_t next_handle_ = 1;
  uint32_t context_ = 0;
  uint32_t contexts_ = 1;
  uint64_t sequence_ = 0;

 public:
  std::map<uint16_t, uint8_t> streams;           // created ones and their devices
  std::map<std::string, std::string> libraries;  // kernel libraries that the client chose, by operator
};

// The context of a fresh PyTorch.
ContextState DefaultContext();

}  // namespace flagos::testing
