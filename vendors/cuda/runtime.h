// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs as a DeviceRuntime. The dispatch thread launches; the devices' own queues do the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vendors/cuda/events.h"
#include "vendors/cuda/memory.h"
#include "vendors/cuda/pinned_arena.h"
#include "vendors/cuda/precision.h"
#include "vendors/cuda/streams.h"
#include "vendors/cuda/waiter.h"
#include "vendors/torch/device_runtime.h"

namespace flagos::cuda {

class CudaRuntime final : public torch_host::DeviceRuntime {
 public:
  // May throw.
  CudaRuntime(uint8_t devices, vendor::Host& host);

  c10::DispatchKey dispatch_key() const override { return c10::DispatchKey::CUDA; }
  uint32_t device_count() const override { return device_count_; }
  c10::Device device(uint8_t index) const override {
    return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
  }
  void enter(uint8_t device, uint16_t stream) override {
    if (device != entered_device_ || stream != entered_stream_) [[unlikely]]
      change(device, stream);
  }

  c10::Storage allocate(uint64_t bytes, uint8_t device, uint16_t stream) override;
  void use_arena(std::span<std::byte> bytes) override { arena_.cover(bytes); }
  MemoryStats memory_stats(uint8_t device) override { return memory_.stats(device); }
  std::string memory_text(uint8_t device) override { return memory_.lease_text(device); }
  void empty_cache(uint8_t device) override { memory_.empty_cache(device); }
  void reset_peak_memory(uint8_t device) override { memory_.reset_peaks(device); }

  Result<vendor::SharedMemory> share(c10::StorageImpl& storage, uint8_t device) override;
  Result<c10::Storage> adopt(vendor::SharedMemory memory, uint8_t device) override;

  Error create_stream(uint16_t stream, uint8_t device, int32_t priority) override {
    return streams_.create(stream, device, priority);
  }
  int stream_device(uint16_t stream) const override { return streams_.device_of(stream); }
  // Launching does not wait.
  bool queued(uint16_t) const override { return false; }
  void enqueue(uint16_t, std::function<void()> work) override { work(); }
  bool concurrent() const override { return false; }
  void drain() override {}
  Error lost() override;

  void fence(uint16_t stream, uint8_t device, torch_host::Done done) override;
  Error record_event(uint32_t event, uint16_t stream, bool timing, torch_host::Done done) override;
  Error wait_event(uint32_t event, uint16_t stream) override;
  void destroy_event(uint32_t event) override { events_.destroy(event); }
  void elapsed_time(uint32_t first, uint32_t second, std::function<void(Result<double>)> done) override {
    events_.elapsed(first, second, std::move(done));
  }

  at::Generator default_generator(uint8_t device) override;
  at::Generator make_generator(uint8_t device) override;
  // Kernels find the current device's by themselves.
  std::shared_ptr<void> hold_default_generator(uint8_t) override { return nullptr; }

  void apply_context(const ContextState& state) override { ApplyPrecision(state); }

 private:
  static constexpr uint8_t kNowhere = 0xff;

  void change(uint8_t device, uint16_t stream);
  // The error of what is being caught, which the host learns of too where it means the end.
  Error current_error();
  // Makes the stream's device current; null where there is no such stream.
  cudaStream_t use(uint16_t stream);

  vendor::Host& host_;
  const uint8_t device_count_;
  PinnedArena arena_;
  Memory memory_;
  Streams streams_;
  std::vector<std::unique_ptr<EventPool>> pools_;  // by device
  Waiter waiter_;                                  // after what its callbacks use, so that it ends first
  Events events_{waiter_};
  uint8_t entered_device_ = kNowhere;
  uint16_t entered_stream_ = 0;
};

}  // namespace flagos::cuda
