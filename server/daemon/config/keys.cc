// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/keys.h"

#include <algorithm>
#include <numeric>

#include "server/common/strings.h"
#include "server/daemon/config/values.h"

namespace flagos::daemon {
namespace {

absl::Status ReadOptions(const toml::node& value, VendorConfig& vendor) {
  const toml::table* const table = value.as_table();
  if (table == nullptr) return Expected("a table of the vendor's options, as { key = \"value\" }");
  for (const auto& [key, entry] : *table) {
    if (const auto text = entry.value_exact<std::string>()) {
      vendor.options[std::string(key.str())] = *text;
    } else if (const auto number = entry.value_exact<int64_t>()) {
      vendor.options[std::string(key.str())] = Cat(*number);
    } else {
      return Expected(Cat("a text or a whole number for the option ", key.str()));
    }
  }
  return absl::OkStatus();
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The key of the member that `Path` leads to from a Config.
template <auto... Path>
ConfigKey Key(std::string_view section, std::string_view name, Change change, std::string_view note = {}) {
  return {.section = section,
          .name = name,
          .change = change,
          .note = note,
          .read = [](const toml::node& value, Config& config) { return ReadValue(value, (config.*....*Path)); },
          .show = [](const Config& config) { return ShowValue((config.*....*Path)); },
          .copy = [](const Config& from, Config& to) { (to.*....*Path) = (from.*....*Path); }};
}

}  // namespace

std::string ConfigKey::path() const { return Cat(section, ".", name); }

const std::vector<ConfigKey>& ConfigKeys() {
  constexpr auto kDaemon = &Config::daemon;
  constexpr auto kDevices = &Config::devices;
  constexpr auto kPool = &Config::pool;
  constexpr auto kSession = &Config::session;
  constexpr auto kQuota = &Config::quota;
  constexpr auto kCompute = &Config::compute;
  constexpr auto kContainers = &Config::containers;
  constexpr auto kMetrics = &Config::metrics;
  constexpr auto kAudit = &Config::audit;
  constexpr auto kLog = &DaemonConfig::log;
  constexpr const char* kOneChain = "a chain is not moved while it grows";
  constexpr const char* kNewSessions = "for sessions that attach from then on";
  static const std::vector<ConfigKey> keys = {
      Key<kDaemon, &DaemonConfig::listen>("daemon", "listen", Change::kRestart, "clients hold connections to it"),
      Key<kDaemon, &DaemonConfig::state>("daemon", "state", Change::kRestart, "executors know its socket"),
      Key<kDaemon, &DaemonConfig::spawner>("daemon", "spawner", Change::kRestart, kVendorNote),
      Key<kDaemon, kLog, &log::Options::format>("daemon", "log", Change::kHot),
      Key<kDaemon, kLog, &log::Options::level>("daemon", "log_level", Change::kHot),
      Key<kDaemon, kLog, &log::Options::file>("daemon", "log_file", Change::kHot),
      Key<kDaemon, &DaemonConfig::idle_after>("daemon", "idle_after", Change::kHot),
      Key<kDevices, &DevicesConfig::vendor>("devices", "vendor", Change::kRestart, kVendorNote),
      Key<kDevices, &DevicesConfig::count>("devices", "count", Change::kRestart, kVendorNote),
      Key<kDevices, &DevicesConfig::include>("devices", "include", Change::kRestart,
                                             "sessions and leases hold devices"),
      Key<kDevices, &DevicesConfig::telemetry>("devices", "telemetry", Change::kHot),
      Key<kPool, &PoolConfig::warm>("pool", "warm", Change::kHot),
      Key<kPool, &PoolConfig::max_warm>("pool", "max_warm", Change::kHot),
      Key<kPool, &PoolConfig::start_timeout>("pool", "start_timeout", Change::kHot,
                                             "for executors that start from then on"),
      Key<kSession, &SessionConfig::ring>("session", "ring", Change::kHot, kNewSessions),
      Key<kSession, &SessionConfig::arena>("session", "arena", Change::kHot, kNewSessions),
      Key<kSession, &SessionConfig::faulted_keep>("session", "faulted_keep", Change::kHot,
                                                  "for sessions that end from then on"),
      Key<kSession, &SessionConfig::max_per_user>("session", "max_per_user", Change::kHot, kNewSessions),
      Key<kSession, &SessionConfig::max_leases_per_user>("session", "max_leases_per_user", Change::kHot,
                                                         "for leases that are opened from then on"),
      Key<kQuota, &QuotaConfig::default_memory>("quota", "default_memory", Change::kHot,
                                                "for leases that are opened from then on"),
      Key<kCompute, &ComputeConfig::mode>("compute", "mode", Change::kHot),
      Key<kContainers, &ContainersConfig::folder>("containers", "folder", Change::kRestart,
                                                  "containers have it mounted"),
      Key<kContainers, &ContainersConfig::cdi>("containers", "cdi", Change::kRestart, "container runtimes read it"),
      Key<kMetrics, &MetricsConfig::listen>("metrics", "listen", Change::kRestart, "scrapers hold connections to it"),
      Key<kMetrics, &MetricsConfig::socket>("metrics", "socket", Change::kRestart, "scrapers hold connections to it"),
      Key<kMetrics, &MetricsConfig::max_series>("metrics", "max_series", Change::kHot),
      Key<kAudit, &AuditConfig::file>("audit", "file", Change::kRestart, kOneChain),
      Key<kAudit, &AuditConfig::head>("audit", "head", Change::kRestart, kOneChain),
      Key<kAudit, &AuditConfig::max_size>("audit", "max_size", Change::kHot),
      Key<kAudit, &AuditConfig::keep>("audit", "keep", Change::kHot, "when the next file begins"),
  };
  return keys;
}

const std::vector<VendorKey>& VendorKeys() {
  static const std::vector<VendorKey> keys = {
      {"libtorch", [](const toml::node& v, VendorConfig& vendor) { return ReadValue(v, vendor.libtorch); }},
      {"options", ReadOptions},
  };
  return keys;
}

std::string_view Nearest(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  size_t distance = std::max<size_t>(word.size() / 2, 2) + 1;  // farther is no likeness
  for (const std::string_view candidate : known) {
    const size_t edits = EditDistance(word, candidate);
    if (edits < distance) {
      distance = edits;
      best = candidate;
    }
  }
  return best;
}

}  // namespace flagos::daemon
