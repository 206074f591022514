// SPDX-License-Identifier: Apache-2.0
// The keys of the configuration: one table that says for each how it is read, shown, and changed while flagosd runs.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/daemon/config/config.h"

namespace flagos::daemon {

// Whether a running flagosd takes a new value over.
enum class Change { kHot, kRestart };

struct ConfigKey {
  std::string_view section;
  std::string_view name;
  Change change;
  // For what a hot value holds, or why a restart is needed; empty where that is obvious.
  std::string_view note;
  // Takes a file's value over into `config`; an error says what the value should have been.
  absl::Status (*read)(const toml::node& value, Config& config);
  // The value as text; two values are equal where their texts are.
  std::string (*show)(const Config& config);
  void (*copy)(const Config& from, Config& to);

  std::string path() const;  // "pool.warm"
};

// Every key but `schema` and those of [vendor.NAME].
const std::vector<ConfigKey>& ConfigKeys();

// Of [vendor.NAME]. They are what executors are started with, and need a restart.
struct VendorKey {
  std::string_view name;
  absl::Status (*read)(const toml::node& value, VendorConfig& vendor);
};
const std::vector<VendorKey>& VendorKeys();
inline constexpr std::string_view kVendorNote = "executors are started with it";

// The one of `known` that is the fewest edits away from `word`; empty where all are far.
std::string_view Nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace flagos::daemon
