// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/values.h"

#include <utility>

#include "server/common/strings.h"
#include "server/daemon/config/units.h"

namespace flagos::daemon {

absl::Status Expected(std::string_view what) { return absl::InvalidArgumentError(Cat("expected ", what)); }

absl::Status ReadValue(const toml::node& value, std::string& to) {
  const auto text = value.value_exact<std::string>();
  if (!text || text->empty()) return Expected("a text in quotes");
  to = *text;
  return absl::OkStatus();
}

absl::Status ReadValue(const toml::node& value, uint32_t& to) {
  const auto number = value.value_exact<int64_t>();
  if (!number || *number < 0 || *number > 1'000'000) return Expected("a whole number that is not negative");
  to = static_cast<uint32_t>(*number);
  return absl::OkStatus();
}

absl::Status ReadValue(const toml::node& value, uint64_t& to) {
  const auto text = value.value_exact<std::string>();
  if (!text) return Expected("a size with a unit in quotes, as \"64MiB\"");
  const auto bytes = ParseBytes(*text);
  if (bytes.ok()) to = *bytes;
  return bytes.status();
}

absl::Status ReadValue(const toml::node& value, std::chrono::nanoseconds& to) {
  const auto text = value.value_exact<std::string>();
  if (!text) return Expected("a duration with a unit in quotes, as \"5s\"");
  const auto duration = ParseDuration(*text);
  if (duration.ok()) to = *duration;
  return duration.status();
}

absl::Status ReadValue(const toml::node& value, log::Format& to) {
  const auto format = log::ParseFormat(value.value_exact<std::string>().value_or(""));
  if (!format) return Expected("\"text\" or \"json\"");
  to = *format;
  return absl::OkStatus();
}

absl::Status ReadValue(const toml::node& value, log::Level& to) {
  const auto level = log::ParseLevel(value.value_exact<std::string>().value_or(""));
  if (!level) return Expected("\"debug\", \"info\", \"warn\" or \"error\"");
  to = *level;
  return absl::OkStatus();
}

absl::Status ReadValue(const toml::node& value, SpawnerKind& to) {
  const std::string kind = value.value_exact<std::string>().value_or("");
  if (kind != "fork" && kind != "systemd") return Expected("\"fork\" or \"systemd\"");
  to = kind == "fork" ? SpawnerKind::kFork : SpawnerKind::kSystemd;
  return absl::OkStatus();
}

absl::Status ReadValue(const toml::node& value, std::vector<uint32_t>& to) {
  const toml::array* const list = value.as_array();
  if (list == nullptr) return Expected("a list of device numbers, as [0, 1]");
  std::vector<uint32_t> devices;
  for (const toml::node& entry : *list) {
    if (!ReadValue(entry, devices.emplace_back()).ok()) return Expected("a list of device numbers, as [0, 1]");
  }
  to = std::move(devices);
  return absl::OkStatus();
}

absl::Status ReadValue(const toml::node& value, MemoryLimit& to) {
  const auto limit = ParseMemoryLimit(value.value_exact<std::string>().value_or(""));
  if (limit.ok()) to = *limit;
  return limit.status();
}

absl::Status ReadValue(const toml::node& value, ComputeMode& to) {
  const auto text = value.value_exact<std::string>();
  if (text == "strict") {
    to = ComputeMode::kStrict;
  } else if (text == "work-conserving") {
    to = ComputeMode::kWorkConserving;
  } else {
    return Expected("\"strict\" or \"work-conserving\"");
  }
  return absl::OkStatus();
}

std::string ShowValue(ComputeMode value) { return value == ComputeMode::kStrict ? "strict" : "work-conserving"; }
std::string ShowValue(const MemoryLimit& value) { return FormatMemoryLimit(value); }
std::string ShowValue(const std::string& value) { return value; }
std::string ShowValue(uint32_t value) { return Cat(value); }
std::string ShowValue(uint64_t value) { return FormatBytes(value); }
std::string ShowValue(std::chrono::nanoseconds value) { return FormatDuration(value); }
std::string ShowValue(log::Format value) { return value == log::Format::kJson ? "json" : "text"; }

std::string ShowValue(SpawnerKind value) { return value == SpawnerKind::kSystemd ? "systemd" : "fork"; }

std::string ShowValue(log::Level value) {
  switch (value) {
    case log::Level::kDebug: return "debug";
    case log::Level::kInfo: return "info";
    case log::Level::kWarn: return "warn";
    case log::Level::kError: return "error";
  }
  return {};
}

std::string ShowValue(const std::vector<uint32_t>& value) {
  std::string list;
  for (const uint32_t device : value) list += Cat(list.empty() ? "" : ", ", device);
  return Cat("[", list, "]");
}

}  // namespace flagos::daemon
