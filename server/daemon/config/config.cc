// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/config.h"

#include <bit>
#include <set>
#include <utility>

#include "proto/shm/layout.h"
#include "proto/wire/types.h"
#include "server/common/strings.h"
#include "server/daemon/config/units.h"
#include "server/daemon/metrics/address.h"

namespace flagos::daemon {
namespace {

constexpr uint64_t kMinArena = 1u << 20;
constexpr uint64_t kMaxArena = 1ull << 46;
constexpr uint64_t kMinAuditFile = 64u << 10;
constexpr std::chrono::nanoseconds kShortestTelemetry = std::chrono::milliseconds(100);
constexpr std::chrono::nanoseconds kLongestTelemetry = std::chrono::hours(1);

// A vendor's name is part of file names.
bool IsVendorName(const std::string& name) {
  return !name.empty() && name.size() < 32 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

// One mistake after the other, each behind the place where its value was given.
class Mistakes {
 public:
  explicit Mistakes(const Config& config) : config_(config) {}
  void add(std::string_view key, const std::string& what) {
    const auto origin = config_.origins.find(key);
    texts_.push_back(origin == config_.origins.end() ? what : Cat(origin->second, ": ", what));
  }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  const Config& config_;
  std::vector<std::string> texts_;
};

}  // namespace

const VendorConfig& Config::vendor() const {
  static const VendorConfig kNone;
  const auto found = vendors.find(devices.vendor);
  return found == vendors.end() ? kNone : found->second;
}

std::string StateFolder(const Config& config) {
  if (config.embedded) return {};
  return config.daemon.state.empty() ? config.daemon.listen + ".state" : config.daemon.state;
}

std::string ExecutorSocket(const Config& config) {
  const std::string folder = StateFolder(config);
  return folder.empty() ? folder : folder + "/executors/flagosd.sock";
}

std::string ContainersFolder(const Config& config) {
  if (config.embedded || !config.containers.folder.empty()) return config.embedded ? "" : config.containers.folder;
  return StateFolder(config) + "/containers";
}

std::vector<std::string> Validate(const Config& config) {
  Mistakes mistakes(config);
  const SessionConfig& session = config.session;
  if (!std::has_single_bit(session.ring) || session.ring < kMinRingBytes || session.ring > kMaxRingBytes) {
    mistakes.add("session.ring", Cat("[session] ring = ", FormatBytes(session.ring), ": must be a power of two from ",
                                     FormatBytes(kMinRingBytes), " to ", FormatBytes(kMaxRingBytes)));
  }
  if (session.arena < kMinArena || session.arena > kMaxArena) {
    mistakes.add("session.arena", Cat("[session] arena = ", FormatBytes(session.arena), ": must be from ",
                                      FormatBytes(kMinArena), " to ", FormatBytes(kMaxArena)));
  }
  if (session.max_per_user == 0)
    mistakes.add("session.max_per_user", "[session] max_per_user = 0: nobody could attach; say at least 1");
  if (config.pool.start_timeout.count() == 0)
    mistakes.add("pool.start_timeout", "[pool] start_timeout = 0s: no executor starts in no time");
  if (config.pool.warm > 64) mistakes.add("pool.warm", "[pool] warm: at most 64 executors are held ready");
  if (!IsVendorName(config.devices.vendor)) {
    mistakes.add("devices.vendor", Cat("[devices] vendor = \"", config.devices.vendor,
                                       "\": a vendor's name has lower case letters, digits and '_' only"));
  }
  if (config.devices.count > kMaxDevices) {
    mistakes.add("devices.count", Cat("[devices] count = ", config.devices.count, ": at most ", kMaxDevices));
  }
  const std::chrono::nanoseconds telemetry = config.devices.telemetry;
  if (telemetry.count() != 0 && (telemetry < kShortestTelemetry || telemetry > kLongestTelemetry)) {
    mistakes.add("devices.telemetry",
                 Cat("[devices] telemetry = ", FormatDuration(telemetry), ": must be 0s (never) or from ",
                     FormatDuration(kShortestTelemetry), " to ", FormatDuration(kLongestTelemetry)));
  }
  if (!config.metrics.listen.empty() && !ParseMetricsAddress(config.metrics.listen)) {
    mistakes.add("metrics.listen", Cat("[metrics] listen = \"", config.metrics.listen,
                                       "\": must be a numeric address and a port, as 127.0.0.1:9466"));
  }
  if (config.audit.max_size < kMinAuditFile) {
    mistakes.add("audit.max_size", Cat("[audit] max_size = ", FormatBytes(config.audit.max_size), ": must be at least ",
                                       FormatBytes(kMinAuditFile)));
  }
  if (config.audit.file.empty() && !config.audit.head.empty())
    mistakes.add("audit.head", "[audit] head: there is no log that it could be of; name its file, too");
  if (!config.audit.file.empty() && config.audit.file == config.audit.head)
    mistakes.add("audit.head", "[audit] head: must be another file than the log");
  std::set<uint32_t> seen;
  for (const uint32_t device : config.devices.include) {
    if (device >= kMaxDevices || (config.devices.count != 0 && device >= config.devices.count)) {
      mistakes.add("devices.include", Cat("[devices] include names device ", device, ", which there is not: count is ",
                                          config.devices.count == 0 ? kMaxDevices : config.devices.count));
    }
    if (!seen.insert(device).second)
      mistakes.add("devices.include", Cat("[devices] include names device ", device, " twice"));
  }
  for (const auto& [name, vendor] : config.vendors) {
    if (!IsVendorName(name)) mistakes.add("", Cat("[vendor.", name, "]: no vendor can have that name"));
    for (const auto& [key, value] : vendor.options) {
      if (key.empty() || key.find('=') != std::string::npos) {
        mistakes.add(Cat("vendor.", name, ".options.", key),
                     Cat("[vendor.", name, "] options: \"", key, "\" cannot be the name of an option"));
      }
    }
  }
  return mistakes.take();
}

}  // namespace flagos::daemon
