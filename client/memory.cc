// SPDX-License-Identifier: Apache-2.0
#include "client/memory.h"

#include <ATen/ATen.h>
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "client/device.h"
#include "client/handles.h"
#include "client/register.h"
#include "client/session.h"

namespace flagos::client {
namespace {

RecordHeader HeaderOn(c10::DeviceIndex device, RecordKind kind, uint32_t subject = 0) {
  return MakeHeader(kind, subject, CurrentStreamSlot(device), static_cast<uint8_t>(device));
}

void Set(c10::CachingAllocator::StatArray& stat, int64_t current, int64_t peak, int64_t up = 0, int64_t down = 0) {
  auto& all = stat[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  all.current = current;
  all.peak = peak;
  all.allocated = up;
  all.freed = down;
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return AllocateOnDevice(bytes, {c10::kPrivateUse1, CurrentDevice()}); }
  // No raw_deleter(): data and context differ, so raw_allocate() cannot work and says so.
  void copy_data(void* to, const void*, std::size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "flagos: bytes at ", to, " lie in another process; copy tensors instead");
  }

  bool initialized() override { return Session::Current() != nullptr; }
  void emptyCache(c10::MempoolId_t) override { EmptyCache(); }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override { RecordStream(data, stream); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const MemoryStats now = DeviceMemoryStats(device);
    c10::CachingDeviceAllocator::DeviceStats stats;
    Set(stats.allocated_bytes, now.allocated_bytes, now.peak_allocated_bytes);
    Set(stats.active_bytes, now.allocated_bytes, now.peak_allocated_bytes);
    Set(stats.requested_bytes, now.allocated_bytes, now.peak_allocated_bytes);
    Set(stats.reserved_bytes, now.reserved_bytes, now.peak_reserved_bytes);
    const int64_t live = now.allocations - now.frees;
    Set(stats.allocation, live, live, now.allocations, now.frees);
    Set(stats.active, live, live, now.allocations, now.frees);
    const int64_t segments = now.device_allocations - now.device_frees;
    Set(stats.segment, segments, segments, now.device_allocations, now.device_frees);
    stats.num_alloc_retries = now.retries;
    stats.num_device_alloc = now.device_allocations;
    stats.num_device_free = now.device_frees;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "flagos keeps its counters for the life of a session; compare two readings instead");
  }
  void resetPeakStats(c10::DeviceIndex device) override { ResetPeakMemoryStats(device); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override { return MemoryInfo(device); }
};

void FreePinned(void* address) noexcept {
  if (Session* const session = Session::Current()) session->arena().free(address);
}

class HostAllocator final : public at::HostAllocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &FreePinned, at::kCPU};
    std::byte* const at = Session::Get().allocate_arena(bytes);
    return {at, at, &FreePinned, at::kCPU};
  }
  at::DeleterFnPtr raw_deleter() const override { return &FreePinned; }
  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }

  bool record_event(void* address, void*, c10::Stream stream) override {
    Session* const session = Session::Current();
    if (session == nullptr || !session->arena().contains(address)) return false;
    const uint16_t slot = SlotOf(stream);
    const std::lock_guard lock(session->lock());
    session->arena().hold_until(address, slot, session->fence(slot, static_cast<uint8_t>(stream.device_index())));
    return true;
  }
  void empty_cache() override {
    if (Session* const session = Session::Current()) session->arena().reclaim();
  }
  at::HostStats get_stats() override {
    at::HostStats stats;
    if (Session* const session = Session::Current()) {
      stats.allocated_bytes.current = static_cast<int64_t>(session->arena().in_use());
    }
    return stats;
  }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

Allocator device_allocator;
HostAllocator host_allocator;

// All bytes of a storage as a tensor that does not own it.
at::Tensor BytesOf(const c10::Storage& storage, int64_t count) {
  auto bytes = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), caffe2::TypeMeta::Make<uint8_t>());
  bytes.unsafeGetTensorImpl()->set_sizes_contiguous(count);
  return bytes;
}

}  // namespace

MemoryStats DeviceMemoryStats(c10::DeviceIndex device) {
  MemoryStats stats{};
  CheckDevice(device);
  Session* const session = Session::Current();
  if (session == nullptr) return stats;
  {
    const std::lock_guard lock(session->lock());
    session->late_frees().collect(*session);
  }
  const auto body = session->request(HeaderOn(device, RecordKind::kMemoryStats));
  std::memcpy(&stats, body.data(), std::min(body.size(), sizeof stats));
  return stats;
}

std::pair<size_t, size_t> MemoryInfo(c10::DeviceIndex device) {
  CheckDevice(device);
  Session::Get();
  const MemoryStats now = DeviceMemoryStats(device);
  const int64_t total = now.quota_bytes != 0 ? now.quota_bytes : now.total_bytes;
  return {static_cast<size_t>(now.free_bytes), static_cast<size_t>(total)};
}

void ResetPeakMemoryStats(c10::DeviceIndex device) {
  CheckDevice(device);
  Session* const session = Session::Current();
  if (session == nullptr) return;
  session->request(HeaderOn(device, RecordKind::kMemoryStats, 1));
}

void EmptyCache() {
  Session* const session = Session::Current();
  if (session == nullptr) return;
  session->arena().reclaim();
  {
    const std::lock_guard lock(session->lock());
    session->late_frees().collect(*session);
  }
  for (uint32_t device = 0; device < session->device_count(); ++device) {
    session->send(HeaderOn(static_cast<c10::DeviceIndex>(device), RecordKind::kEmptyCache));
  }
}

c10::DeviceAllocator* DeviceAllocator() { return &device_allocator; }
c10::Allocator* PinnedAllocator() { return &host_allocator; }

bool IsPinned(const void* address) {
  Session* const session = Session::Current();
  return session != nullptr && session->arena().contains(address) && session->arena().range_of(address).has_value();
}

void ResizeStorage(const c10::Storage& storage, size_t bytes) {
  c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
  const size_t kept = std::min(bytes, impl->nbytes());
  c10::DataPtr data = AllocateOnDevice(bytes, impl->device());
  if (kept != 0) {
    const c10::Storage fresh(c10::Storage::use_byte_size_t(), bytes, std::move(data), impl->allocator(), true);
    const at::AutoDispatchBelowADInplaceOrView below;
    BytesOf(fresh, static_cast<int64_t>(kept)).copy_(BytesOf(storage, static_cast<int64_t>(kept)));
    data = fresh.unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr());
  }
  impl->set_data_ptr_noswap(std::move(data));
  impl->set_nbytes(bytes);
}

void RegisterAllocators() {
  c10::SetAllocator(c10::kPrivateUse1, &device_allocator);
  at::setHostAllocator(c10::kPrivateUse1, &host_allocator);
  // A PyTorch for CUDA takes all pinned memory from CUDA's, whose devices this process does not use: what is pinned is
  // to be pinned for ours.
  if (at::globalContext().hasCUDA()) at::setHostAllocator(c10::kCUDA, &host_allocator);
}

}  // namespace flagos::client
