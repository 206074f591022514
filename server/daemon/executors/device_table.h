// SPDX-License-Identifier: Apache-2.0
// The devices of the node, as executors describe them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/wire/attach.h"
#include "server/daemon/executors/spec.h"

namespace flagos::daemon {

// Loop thread only. Nothing is known until the first executor of the default set is ready.
class DeviceTable {
 public:
  struct Entry {
    uint32_t index;  // on the node
    DeviceRecord record;
  };

  // `included`: [devices] include; empty: all that the vendor presents.
  explicit DeviceTable(DeviceSet included) : default_set_(std::move(included)) {}

  // The set that a session without wishes gets.
  const DeviceSet& default_set() const { return default_set_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // What a session of these devices (empty: all) sees, in its order.
  std::vector<DeviceRecord> records(const DeviceSet& devices) const;
  bool known() const { return !entries_.empty(); }
  // Known, or it was told why they are not: when_known() answers at once.
  bool settled() const { return known() || !failure_.ok(); }
  // The last executor that was started became ready.
  bool healthy() const { return failure_.ok(); }

  // Takes over what an executor of `set` says.
  void update(const DeviceSet& set, const std::string& vendor, const std::vector<DeviceRecord>& records);
  // An executor could not be started: devices are unhealthy, and who waits for them is told.
  void fail(const absl::Status& status);

  // Calls `then` once the devices are known, or with the reason why they are not. At once, unless the first executor is
  // still on its way.
  void when_known(std::function<void(const absl::Status&)> then);

  const std::string& vendor() const { return vendor_; }

  // The devices of a lease (empty: all) narrowed by a client's mask, whose bit i is the i-th of them; 0: no wish. The
  // default set comes out as itself, so that it is served from its warm pool. REQUIRES known() unless mask is 0.
  absl::StatusOr<DeviceSet> choose(const DeviceSet& lease, uint64_t mask) const;
  // Devices by index on the node, each once and present. REQUIRES known().
  absl::Status check(const DeviceSet& devices) const;

 private:
  DeviceSet normalise(const DeviceSet& devices) const;
  void tell(const absl::Status& status);

  const DeviceSet default_set_;
  std::vector<Entry> entries_;
  std::string vendor_;
  absl::Status failure_;  // of the last start
  std::vector<std::function<void(const absl::Status&)>> waiting_;
};

}  // namespace flagos::daemon
