// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/lease_limit.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>

#include "vendors/cuda/errors.h"
#include "vendors/torch/failures.h"

namespace flagos::cuda {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

std::atomic<LeaseLimit*> installed{nullptr};

uint64_t Held(uint8_t device) {
  return static_cast<uint64_t>(std::max<int64_t>(allocator::getDeviceStats(device).reserved_bytes[kAll].current, 0));
}

// Called where the cache has no block that fits, before new memory is asked for.
class BeforeSegment final : public c10::FreeMemoryCallback {
 public:
  bool Execute() override {
    if (LeaseLimit* const limit = installed.load(std::memory_order_acquire)) limit->before_segment();
    return false;  // nothing was freed into the cache
  }
};

}  // namespace

LeaseLimit& LeaseLimit::Install(LeaseAccount& account, uint8_t devices) {
  auto* const limit = new LeaseLimit(account, devices);
  bool limited = false;
  for (uint8_t device = 0; device < devices; ++device) limited |= account.view(device).quota != 0;
  if (!limited) return *limit;
  allocator::attachAllocatorTraceTracker([limit](const allocator::TraceEntry& entry) {
    using Action = allocator::TraceEntry::Action;
    if (entry.action_ != Action::SEGMENT_ALLOC && entry.action_ != Action::OOM) [[likely]]
      return;
    limit->settle(static_cast<uint8_t>(entry.device_));
  });
  installed.store(limit, std::memory_order_release);
  return *limit;
}

LeaseLimit::LeaseLimit(LeaseAccount& account, uint8_t devices) : account_(account) {
  allocator::emptyCache();
  for (uint8_t device = 0; device < devices; ++device) {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
    size_t free = 0, total = 0;
    Check(cudaMemGetInfo(&free, &total), "asking for the device's memory");
    totals_.push_back(total);
    if (account_.charge(device, Held(device))) continue;
    throw torch_host::Refusal(ErrorCode::kOutOfMemory, "the lease has no room for what the executor holds already; " +
                                                           Describe(view(device)) + ": end other sessions of it");
  }
}

void LeaseLimit::settle(uint8_t device) { account_.settle(device, Held(device)); }

void LeaseLimit::before_segment() {
  const auto device = static_cast<uint8_t>(c10::cuda::current_device());
  if (device >= totals_.size()) return;
  settle(device);  // what was returned since the last time is to be had again
  const uint64_t most = account_.claim_rest(device);
  // The allocator makes bytes of the fraction again, and cuts what is behind the point.
  const double fraction = (static_cast<double>(most) + 0.5) / static_cast<double>(totals_[device]);
  allocator::setMemoryFraction(std::min(1.0, fraction), static_cast<c10::DeviceIndex>(device));
}

}  // namespace flagos::cuda

namespace c10 {
C10_REGISTER_CLASS(FreeCudaMemoryCallbacksRegistry, flagos_lease_limit, flagos::cuda::BeforeSegment)
}  // namespace c10
