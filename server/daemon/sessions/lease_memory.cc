// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/sessions/lease_memory.h"

#include <algorithm>

#include "server/common/status.h"

namespace flagos::daemon {
namespace {

uint64_t Clamp(uint64_t bytes) { return std::min<uint64_t>(bytes, INT64_MAX); }

}  // namespace

absl::StatusOr<std::shared_ptr<LeaseMemoryPage>> LeaseMemoryPage::Create(const MemoryLimit& limit) {
  auto page = CreateLeasePage();
  if (!page.ok()) return ToStatus(page.error());
  return std::shared_ptr<LeaseMemoryPage>(new LeaseMemoryPage(limit, std::move(page).value()));
}

absl::StatusOr<std::shared_ptr<LeaseMemoryPage>> LeaseMemoryPage::Adopt(UniqueFd fd, const MemoryLimit& limit) {
  auto mapping = MapLeasePage(fd.get());
  if (!mapping.ok()) return ToStatus(mapping.error());
  return std::shared_ptr<LeaseMemoryPage>(
      new LeaseMemoryPage(limit, {.fd = std::move(fd), .mapping = std::move(mapping).value()}));
}

void LeaseMemoryPage::limit(const DeviceSet& devices, const std::vector<DeviceRecord>& records) {
  for (size_t i = 0; i < std::min(devices.size(), records.size()); ++i) {
    if (devices[i] >= kMaxDevices || quota_[devices[i]] != 0) continue;
    quota_[devices[i]] = limit_.of(records[i].total_memory);
    LeasePageOf(mapping_).quota[devices[i]].store(quota_[devices[i]]);
  }
}

LeaseMemory LeaseMemoryPage::read(uint32_t device) const {
  if (device >= kMaxDevices) return {};
  LeaseMemory memory = ReadLeaseMemory(LeasePageOf(mapping_), device);
  memory.quota = quota_[device];
  memory.used = Clamp(memory.used);
  memory.largest = Clamp(memory.largest);
  return memory;
}

uint64_t LeaseMemoryPage::used(uint64_t session, uint32_t device) const {
  return device < kMaxDevices ? Clamp(ReadLeaseCharge(LeasePageOf(mapping_), session, device)) : 0;
}

}  // namespace flagos::daemon
