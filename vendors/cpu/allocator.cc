// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <string>

namespace flagos::cpu {
namespace {

constexpr uint8_t kPriority = 200;  // over PyTorch's own
constexpr int kNoDevice = -1;
thread_local int entered_device = kNoDevice;

void Release(void* data) {
  if (data != nullptr) DevicePool::Release(static_cast<std::byte*>(data));
}

[[noreturn]] void ThrowOutOfMemory(const DevicePool& pool, uint8_t device, uint64_t bytes) {
  const MemoryStats stats = pool.stats();
  const auto used = static_cast<uint64_t>(stats.allocated_bytes);
  const auto free = static_cast<uint64_t>(stats.free_bytes);
  const std::string lease = Describe(pool.lease());
  TORCH_CHECK_WITH(OutOfMemoryError, false, "flagos out of memory. Tried to allocate ", ReadableBytes(bytes),
                   " on device ", static_cast<int>(device), ", which has ", ReadableBytes(pool.capacity()),
                   ", of which ", ReadableBytes(free), " is free. This session uses ", ReadableBytes(used), " there",
                   lease.empty() ? "" : "; " + lease, ". Free tensors, use smaller batches",
                   lease.empty() ? "." : ", or open a lease with a larger quota.");
}

}  // namespace

Allocator& Allocator::Install(uint32_t devices, uint64_t capacity) {
  auto* allocator = new Allocator(devices, capacity);
  c10::SetCPUAllocator(allocator, kPriority);
  return *allocator;
}

Allocator::Allocator(uint32_t devices, uint64_t capacity) {
  for (uint32_t i = 0; i < devices; ++i) pools_.push_back(std::make_unique<DevicePool>(capacity));
}

uint8_t Allocator::current_device() const {
  if (pools_.size() == 1) return 0;
  return entered_device == kNoDevice ? last_entered_.load(std::memory_order_relaxed)
                                     : static_cast<uint8_t>(entered_device);
}

void Allocator::enter(uint8_t device) {
  if (pools_.size() == 1) return;
  entered_device = device;
  last_entered_.store(device, std::memory_order_relaxed);
}

c10::DeleterFnPtr Allocator::raw_deleter() const { return &Release; }

c10::DataPtr Allocator::allocate(size_t bytes) { return allocate_on(current_device(), bytes); }

c10::DataPtr Allocator::allocate_on(uint8_t device, size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &Release, c10::Device(c10::kCPU)};
  Block* block = pools_[device]->allocate(bytes);
  if (block == nullptr) [[unlikely]]
    ThrowOutOfMemory(*pools_[device], device, bytes);
  return {block->data, block->data, &Release, c10::Device(c10::kCPU)};
}

void Allocator::count(uint8_t device, uint64_t bytes) {
  if (!pools_[device]->count(bytes)) ThrowOutOfMemory(*pools_[device], device, bytes);
}

c10::Storage Allocator::storage(uint64_t bytes, uint8_t device) {
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, allocate_on(device, bytes), this, true);
}

}  // namespace flagos::cpu
