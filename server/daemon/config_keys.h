// SPDX-License-Identifier: Apache-2.0
// The keys of the configuration file: one table that says for each how it is read and where it goes.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/daemon/config.h"

namespace flagos::daemon {

// Takes a value over into `config`; an error says what the value should have been.
using KeyReader = absl::Status (*)(const toml::node& value, Config& config);

struct ConfigKey {
  std::string_view section;
  std::string_view name;
  KeyReader read;
};

// Every key but `schema` and those of [vendor.NAME].
const std::vector<ConfigKey>& ConfigKeys();

struct VendorKey {
  std::string_view name;
  absl::Status (*read)(const toml::node& value, VendorConfig& vendor);
};
const std::vector<VendorKey>& VendorKeys();

// The one of `known` that is the fewest edits away from `word`; empty where all are far.
std::string_view Nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace flagos::daemon
