// SPDX-License-Identifier: Apache-2.0
// The CPU as a DeviceRuntime: N devices that share one processor, each with memory and a generator of its own.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "vendors/cpu/allocator.h"
#include "vendors/cpu/shared_storage.h"
#include "vendors/cpu/streams.h"
#include "vendors/torch/device_runtime.h"

namespace flagos::cpu {

class CpuRuntime final : public torch_host::DeviceRuntime {
 public:
  CpuRuntime(Allocator& allocator, vendor::Host& host);
  ~CpuRuntime() override;

  c10::DispatchKey dispatch_key() const override { return c10::DispatchKey::CPU; }
  uint32_t device_count() const override { return allocator_.devices(); }
  c10::Device device(uint8_t) const override { return c10::Device(c10::kCPU); }
  void enter(uint8_t device, uint16_t) override { allocator_.enter(device); }

  c10::Storage allocate(uint64_t bytes, uint8_t device, uint16_t stream) override;
  MemoryStats memory_stats(uint8_t device) override { return allocator_.pool(device).stats(); }
  void empty_cache(uint8_t device) override { allocator_.pool(device).trim(); }
  void reset_peak_memory(uint8_t device) override { allocator_.pool(device).reset_peaks(); }

  Result<vendor::SharedMemory> share(c10::StorageImpl& storage, uint8_t device) override {
    return Share(storage, device, allocator_);
  }
  Result<c10::Storage> adopt(vendor::SharedMemory memory, uint8_t device) override {
    return Adopt(std::move(memory), device, allocator_);
  }

  Error create_stream(uint16_t stream, uint8_t device, int32_t) override { return streams_.create(stream, device); }
  int stream_device(uint16_t stream) const override { return streams_.device_of(stream); }
  bool queued(uint16_t stream) const override { return streams_.queued(stream); }
  void enqueue(uint16_t stream, std::function<void()> work) override { streams_.enqueue(stream, std::move(work)); }
  bool concurrent() const override { return streams_.concurrent(); }
  void drain() override { streams_.drain(); }

  void fence(uint16_t stream, uint8_t device, torch_host::Done done) override {
    streams_.fence(stream, device, std::move(done));
  }
  Error record_event(uint32_t event, uint16_t stream, bool timing, torch_host::Done done) override {
    return streams_.record(event, stream, timing, std::move(done));
  }
  Error wait_event(uint32_t event, uint16_t stream) override { return streams_.wait(event, stream); }
  void destroy_event(uint32_t event) override { streams_.destroy(event); }
  void elapsed_time(uint32_t first, uint32_t second, std::function<void(Result<double>)> done) override {
    streams_.elapsed(first, second, std::move(done));
  }

  at::Generator default_generator(uint8_t device) override { return generators_[device]; }
  at::Generator make_generator(uint8_t device) override;
  std::shared_ptr<void> hold_default_generator(uint8_t device) override;

  // PyTorch's common context is all that CPU kernels look at.
  void apply_context(const ContextState&) override {}

 private:
  Allocator& allocator_;
  std::vector<at::Generator> generators_;  // the devices' default ones; the first is PyTorch's own
  std::mutex global_generator_;            // while another one stands in for PyTorch's own
  Streams streams_;
};

}  // namespace flagos::cpu
