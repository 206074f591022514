// SPDX-License-Identifier: Apache-2.0
// PyTorch's CPU allocator for an executor: storages that a client asks for and what kernels allocate come from one
// pool.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "vendors/cpu/pool.h"

namespace flagos::cpu {

// Thread safe. One for the process, installed for good: memory outlives whatever allocated it.
class Allocator final : public c10::Allocator {
 public:
  // Makes an allocator with a pool of `capacity` bytes for each device and installs it.
  static Allocator& Install(uint32_t devices, uint64_t capacity);

  // From the current device's pool. Throws c10::OutOfMemoryError with the figures.
  c10::DataPtr allocate(size_t bytes) override;
  // Libraries behind kernels (oneDNN) allocate and free raw pointers: a DataPtr's context is its data.
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  c10::Storage storage(uint64_t bytes, uint8_t device);
  // Counts memory of a device that is not cut from its pool. Throws like allocate().
  void count(uint8_t device, uint64_t bytes);
  void uncount(uint8_t device, uint64_t bytes) { pools_[device]->uncount(bytes); }
  // The device that the calling thread allocates on from now on. Threads of a kernel follow the dispatch thread.
  void enter(uint8_t device);
  DevicePool& pool(uint8_t device) { return *pools_[device]; }
  uint32_t devices() const { return static_cast<uint32_t>(pools_.size()); }

 private:
  Allocator(uint32_t devices, uint64_t capacity);
  c10::DataPtr allocate_on(uint8_t device, size_t bytes);
  uint8_t current_device() const;

  std::vector<std::unique_ptr<DevicePool>> pools_;
  std::atomic<uint8_t> last_entered_{0};
};

}  // namespace flagos::cpu
