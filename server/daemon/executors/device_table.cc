// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/device_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "server/common/strings.h"

namespace flagos::daemon {

void DeviceTable::update(const DeviceSet& set, const std::string& vendor, const std::vector<DeviceRecord>& records) {
  failure_ = absl::OkStatus();
  if (set != default_set_) return;
  vendor_ = vendor;
  entries_.clear();
  for (size_t i = 0; i < records.size(); ++i) {
    entries_.push_back({set.empty() ? static_cast<uint32_t>(i) : set[i], records[i]});
  }
  tell(absl::OkStatus());
}

std::vector<DeviceRecord> DeviceTable::records(const DeviceSet& devices) const {
  std::vector<DeviceRecord> records;
  if (devices.empty()) {
    for (const Entry& entry : entries_) records.push_back(entry.record);
  }
  for (const uint32_t device : devices) {
    for (const Entry& entry : entries_) {
      if (entry.index == device) records.push_back(entry.record);
    }
  }
  return records;
}

void DeviceTable::fail(const absl::Status& status) {
  failure_ = status;
  tell(status);
}

void DeviceTable::tell(const absl::Status& status) {
  for (const auto& then : std::exchange(waiting_, {})) then(status);
}

void DeviceTable::when_known(std::function<void(const absl::Status&)> then) {
  if (settled()) return then(known() ? absl::OkStatus() : failure_);
  waiting_.push_back(std::move(then));
}

DeviceSet DeviceTable::normalise(const DeviceSet& devices) const {
  DeviceSet all;
  for (const Entry& entry : entries_) all.push_back(entry.index);
  return devices.empty() || devices == all ? default_set_ : devices;
}

absl::StatusOr<DeviceSet> DeviceTable::choose(const DeviceSet& lease, uint64_t mask) const {
  if (mask == 0) return normalise(lease);
  DeviceSet from = lease;
  if (from.empty()) {
    for (const Entry& entry : entries_) from.push_back(entry.index);
  }
  DeviceSet chosen;
  for (uint32_t i = 0; i < kMaxDevices; ++i) {
    if ((mask >> i & 1) == 0) continue;
    if (i >= from.size()) {
      return absl::NotFoundError(
          Cat("device ", i, " was asked for, and there are ", from.size(), "; `flagosctl device list` shows them"));
    }
    chosen.push_back(from[i]);
  }
  return normalise(chosen);
}

absl::Status DeviceTable::check(const DeviceSet& devices) const {
  std::set<uint32_t> seen;
  for (const uint32_t device : devices) {
    const bool present =
        std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.index == device; });
    if (!present)
      return absl::NotFoundError(Cat("there is no device ", device, "; `flagosctl device list` shows them"));
    if (!seen.insert(device).second) return absl::InvalidArgumentError(Cat("device ", device, " is named twice"));
  }
  return absl::OkStatus();
}

}  // namespace flagos::daemon
