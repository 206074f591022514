// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include "proto/shm/futex.h"
#include "vendors/cuda/errors.h"

namespace flagos::cuda {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

Memory::Memory(uint8_t devices, vendor::Host& host)
    : host_(host), limit_(host.memory() == nullptr ? nullptr : &LeaseLimit::Install(*host.memory(), devices)) {
  for (uint8_t device = 0; device < devices; ++device) publish(device);
}

std::string Memory::lease_text(uint8_t device) const {
  return limit_ == nullptr ? std::string() : Describe(limit_->view(device));
}

MemoryStats Memory::stats(uint8_t device) const {
  const auto known = allocator::getDeviceStats(device);
  size_t free = 0, total = 0;
  {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
    Check(cudaMemGetInfo(&free, &total), "asking for the device's memory");
  }
  MemoryStats stats{};
  stats.allocated_bytes = known.allocated_bytes[kAll].current;
  stats.reserved_bytes = known.reserved_bytes[kAll].current;
  stats.peak_allocated_bytes = known.allocated_bytes[kAll].peak;
  stats.peak_reserved_bytes = known.reserved_bytes[kAll].peak;
  stats.allocations = known.allocation[kAll].allocated;
  stats.frees = known.allocation[kAll].freed;
  stats.device_allocations = known.num_device_alloc;
  stats.device_frees = known.num_device_free;
  stats.retries = known.num_alloc_retries;
  stats.total_bytes = static_cast<int64_t>(total);
  stats.free_bytes = static_cast<int64_t>(free);
  return stats;
}

void Memory::reset_peaks(uint8_t device) {
  allocator::resetPeakStats(device);
  publish(device);
}

void Memory::empty_cache(uint8_t device) {
  allocator::emptyCache();
  publish(device);
}

void Memory::publish_now_and_then(uint8_t device) {
  constexpr uint64_t kInterval = 10'000'000;
  const uint64_t now = MonotonicNanoseconds();
  if (now - published_[device] < kInterval) return;
  published_[device] = now;
  publish(device);
}

void Memory::publish(uint8_t device) {
  const auto known = allocator::getDeviceStats(device);
  DeviceFigures& figures = host_.figures(device);
  figures.allocated_bytes.store(known.allocated_bytes[kAll].current, std::memory_order_relaxed);
  figures.reserved_bytes.store(known.reserved_bytes[kAll].current, std::memory_order_relaxed);
  figures.peak_allocated_bytes.store(known.allocated_bytes[kAll].peak, std::memory_order_relaxed);
  if (limit_ != nullptr) limit_->settle(device);
}

}  // namespace flagos::cuda
