// SPDX-License-Identifier: Apache-2.0
#include "vendors/null/ledger.h"

#include <algorithm>
#include <string>

namespace flagos::null {

Ledger::Ledger(vendor::Host& host, uint32_t device_count) : account_(host.memory()) {
  for (uint32_t i = 0; i < device_count; ++i) {
    DeviceFigures& figures = host.figures(i);
    devices_.push_back({&figures, 0, 0, figures.total_bytes.load(std::memory_order_relaxed), 0, 0});
  }
}

Error Ledger::bind(uint32_t handle, uint64_t bytes, uint32_t device) {
  if (handle == 0) return Error::Ok();
  if (handle >= storages_.size()) storages_.resize(std::max<size_t>(handle + 1, storages_.size() * 2));
  release(handle);
  Device& on = devices_[device];
  if (bytes > static_cast<uint64_t>(on.total - on.allocated)) return out_of_memory(bytes, device);
  if (account_ != nullptr && !account_->charge(device, bytes)) return out_of_memory(bytes, device);
  storages_[handle] = {bytes, device, true};
  on.allocated += static_cast<int64_t>(bytes);
  ++on.allocations;
  if (on.allocated > on.peak) {
    on.peak = on.allocated;
    on.figures->peak_allocated_bytes.store(on.peak, std::memory_order_relaxed);
  }
  on.figures->allocated_bytes.store(on.allocated, std::memory_order_relaxed);
  on.figures->reserved_bytes.store(on.allocated, std::memory_order_relaxed);
  return Error::Ok();
}

void Ledger::release(uint32_t handle) {
  if (handle >= storages_.size() || !storages_[handle].bound) return;
  Storage& storage = storages_[handle];
  Device& on = devices_[storage.device];
  storage.bound = false;
  if (account_ != nullptr) account_->uncharge(storage.device, storage.bytes);
  on.allocated -= static_cast<int64_t>(storage.bytes);
  ++on.frees;
  on.figures->allocated_bytes.store(on.allocated, std::memory_order_relaxed);
  on.figures->reserved_bytes.store(on.allocated, std::memory_order_relaxed);
}

MemoryStats Ledger::stats(uint32_t device) const {
  const Device& on = devices_[device];
  MemoryStats stats{};
  stats.allocated_bytes = stats.reserved_bytes = on.allocated;
  stats.peak_allocated_bytes = stats.peak_reserved_bytes = on.peak;
  stats.allocations = stats.device_allocations = on.allocations;
  stats.frees = stats.device_frees = on.frees;
  stats.total_bytes = on.total;
  stats.free_bytes = on.total - on.allocated;
  return stats;
}

void Ledger::reset_peak(uint32_t device) {
  Device& on = devices_[device];
  on.peak = on.allocated;
  on.figures->peak_allocated_bytes.store(on.peak, std::memory_order_relaxed);
}

Error Ledger::out_of_memory(uint64_t bytes, uint32_t device) const {
  const Device& on = devices_[device];
  std::string text = "out of memory on device " + std::to_string(device) + ": tried to allocate " +
                     std::to_string(bytes) + " bytes, but the device has " + std::to_string(on.total - on.allocated) +
                     " of " + std::to_string(on.total) + " free";
  if (const std::string lease = account_ == nullptr ? "" : Describe(account_->view(device)); !lease.empty()) {
    text += ", and " + lease;
  }
  return MakeError(ErrorCode::kOutOfMemory, text + "; free tensors, use smaller batches, or open a larger lease");
}

}  // namespace flagos::null
