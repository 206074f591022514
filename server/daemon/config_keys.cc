// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config_keys.h"

#include <algorithm>
#include <numeric>

#include "server/common/strings.h"
#include "server/daemon/units.h"

namespace flagos::daemon {
namespace {

absl::Status Expected(std::string_view what) { return absl::InvalidArgumentError(Cat("expected ", what)); }

absl::Status ReadText(const toml::node& value, std::string& to) {
  const auto text = value.value_exact<std::string>();
  if (!text || text->empty()) return Expected("a text in quotes");
  to = *text;
  return absl::OkStatus();
}

absl::Status ReadCount(const toml::node& value, uint32_t& to) {
  const auto number = value.value_exact<int64_t>();
  if (!number || *number < 0 || *number > 1'000'000) return Expected("a whole number that is not negative");
  to = static_cast<uint32_t>(*number);
  return absl::OkStatus();
}

absl::Status ReadSize(const toml::node& value, uint64_t& to) {
  const auto text = value.value_exact<std::string>();
  if (!text) return Expected("a size with a unit in quotes, as \"64MiB\"");
  const auto bytes = ParseBytes(*text);
  if (bytes.ok()) to = *bytes;
  return bytes.status();
}

absl::Status ReadTime(const toml::node& value, std::chrono::nanoseconds& to) {
  const auto text = value.value_exact<std::string>();
  if (!text) return Expected("a duration with a unit in quotes, as \"5s\"");
  const auto duration = ParseDuration(*text);
  if (duration.ok()) to = *duration;
  return duration.status();
}

absl::Status ReadLogFormat(const toml::node& value, Config& config) {
  const auto format = log::ParseFormat(value.value_exact<std::string>().value_or(""));
  if (!format) return Expected("\"text\" or \"json\"");
  config.daemon.log.format = *format;
  return absl::OkStatus();
}

absl::Status ReadLogLevel(const toml::node& value, Config& config) {
  const auto level = log::ParseLevel(value.value_exact<std::string>().value_or(""));
  if (!level) return Expected("\"debug\", \"info\", \"warn\" or \"error\"");
  config.daemon.log.level = *level;
  return absl::OkStatus();
}

absl::Status ReadInclude(const toml::node& value, Config& config) {
  const toml::array* const list = value.as_array();
  if (list == nullptr) return Expected("a list of device numbers, as [0, 1]");
  config.devices.include.clear();
  for (const toml::node& entry : *list) {
    uint32_t device = 0;
    if (!ReadCount(entry, device).ok()) return Expected("a list of device numbers, as [0, 1]");
    config.devices.include.push_back(device);
  }
  return absl::OkStatus();
}

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

}  // namespace

const std::vector<ConfigKey>& ConfigKeys() {
  using Node = const toml::node&;
  static const std::vector<ConfigKey> keys = {
      {"daemon", "listen", [](Node v, Config& c) { return ReadText(v, c.daemon.listen); }},
      {"daemon", "log", ReadLogFormat},
      {"daemon", "log_level", ReadLogLevel},
      {"daemon", "log_file", [](Node v, Config& c) { return ReadText(v, c.daemon.log.file); }},
      {"daemon", "idle_after", [](Node v, Config& c) { return ReadTime(v, c.daemon.idle_after); }},
      {"devices", "vendor", [](Node v, Config& c) { return ReadText(v, c.devices.vendor); }},
      {"devices", "count", [](Node v, Config& c) { return ReadCount(v, c.devices.count); }},
      {"devices", "include", ReadInclude},
      {"devices", "telemetry", [](Node v, Config& c) { return ReadTime(v, c.devices.telemetry); }},
      {"pool", "warm", [](Node v, Config& c) { return ReadCount(v, c.pool.warm); }},
      {"pool", "max_warm", [](Node v, Config& c) { return ReadCount(v, c.pool.max_warm); }},
      {"pool", "start_timeout", [](Node v, Config& c) { return ReadTime(v, c.pool.start_timeout); }},
      {"session", "ring", [](Node v, Config& c) { return ReadSize(v, c.session.ring); }},
      {"session", "arena", [](Node v, Config& c) { return ReadSize(v, c.session.arena); }},
      {"session", "faulted_keep", [](Node v, Config& c) { return ReadTime(v, c.session.faulted_keep); }},
      {"session", "max_per_user", [](Node v, Config& c) { return ReadCount(v, c.session.max_per_user); }},
      {"session", "max_leases_per_user", [](Node v, Config& c) { return ReadCount(v, c.session.max_leases_per_user); }},
  };
  return keys;
}

const std::vector<VendorKey>& VendorKeys() {
  static const std::vector<VendorKey> keys = {
      {"libtorch", [](const toml::node& v, VendorConfig& vendor) { return ReadText(v, vendor.libtorch); }},
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
