// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/view.h"

#include <map>
#include <utility>

#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

std::string OriginOf(const Config& config, const std::string& key) {
  const auto found = config.origins.find(key);
  return found == config.origins.end() ? "default" : found->second;
}

std::map<std::string, std::string> ValuesOf(const std::vector<ConfigEntry>& entries) {
  std::map<std::string, std::string> values;
  for (const ConfigEntry& entry : entries) values[entry.key] = entry.value;
  return values;
}

}  // namespace

std::vector<ConfigEntry> Entries(const Config& config) {
  std::vector<ConfigEntry> entries;
  for (const ConfigKey& key : ConfigKeys()) {
    std::string path = key.path();
    std::string origin = OriginOf(config, path);
    entries.push_back({std::move(path), key.show(config), std::move(origin), key.change, std::string(key.note)});
  }
  const auto add = [&](const std::string& key, const std::string& value) {
    entries.push_back({key, value, OriginOf(config, key), Change::kRestart, std::string(kVendorNote)});
  };
  for (const auto& [name, vendor] : config.vendors) {
    if (!vendor.libtorch.empty()) add(Cat("vendor.", name, ".libtorch"), vendor.libtorch);
    for (const auto& [option, value] : vendor.options) add(Cat("vendor.", name, ".options.", option), value);
  }
  return entries;
}

std::vector<ConfigChange> Changes(const Config& from, const Config& to) {
  std::map<std::string, std::string> before = ValuesOf(Entries(from));
  std::vector<ConfigChange> changes;
  for (ConfigEntry& entry : Entries(to)) {
    const auto old = before.extract(entry.key);
    std::string value = old.empty() ? std::string() : std::move(old.mapped());
    if (value != entry.value) changes.push_back({.to = std::move(entry), .from = std::move(value)});
  }
  // Those of vendors that are not given any more.
  for (auto& [key, value] : before) {
    if (value.empty()) continue;
    changes.push_back(
        {.to = {key, std::string(), "default", Change::kRestart, std::string(kVendorNote)}, .from = std::move(value)});
  }
  return changes;
}

void TakeHotKeys(const Config& from, Config& to) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.change == Change::kHot) key.copy(from, to);
  }
  const std::map<std::string, std::string> told = ValuesOf(Entries(from));
  for (const ConfigEntry& entry : Entries(to)) {
    const auto same = told.find(entry.key);
    if (same == told.end() || same->second != entry.value) continue;
    const auto origin = from.origins.find(entry.key);
    if (origin == from.origins.end()) {
      to.origins.erase(entry.key);
    } else {
      to.origins[entry.key] = origin->second;
    }
  }
  to.files = from.files;
}

}  // namespace flagos::daemon
