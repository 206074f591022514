// SPDX-License-Identifier: Apache-2.0
// What a scrape tells: the same figures that flagosctl shows, taken at one moment.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flagos/v1/control.pb.h"

namespace flagos::daemon {

struct MetricsSnapshot {
  v1::ListDevicesResponse devices;
  // Those that run, and those that ended in the last five minutes.
  std::vector<v1::Session> sessions;
  uint64_t sessions_started = 0;    // ever, as the next one
  uint64_t sessions_lost = 0;       // whose executor died
  uint64_t sessions_readopted = 0;  // of an earlier flagosd
  uint64_t sessions_awaited = 0;    // of an earlier flagosd, whose executors have not come
  uint64_t restarts = 0;            // of flagosd over its state
  struct Audit {
    uint64_t records = 0, failures = 0;
  };
  std::optional<Audit> audit;  // of the audit log, where there is one
  bool reload_ok = true;       // the configuration's latest reload; true before the first
  double started = 0;          // when flagosd did, Unix seconds
  uint64_t resident = 0;       // bytes of flagosd
};

// The snapshot as a page of metrics, of at most `max_series` samples. docs/operations.md lists the names.
std::string RenderMetrics(const MetricsSnapshot& snapshot, size_t max_series);

// What Prometheus no longer wants to know of a session that is over.
inline constexpr std::chrono::minutes kEndedShown{5};

}  // namespace flagos::daemon
