// SPDX-License-Identifier: Apache-2.0
// A configuration key by key, and what tells two of them apart.
#pragma once

#include <string>
#include <vector>

#include "server/daemon/config/config.h"
#include "server/daemon/config/keys.h"

namespace flagos::daemon {

struct ConfigEntry {
  std::string key;     // "pool.warm", "vendor.cpu.options.threads"
  std::string value;   // empty: none is given
  std::string origin;  // "default", or as Config::origins has it
  Change change;
  std::string note;  // of the key
};

// Every key in the order of ConfigKeys(), then those of vendors that are given.
std::vector<ConfigEntry> Entries(const Config& config);

struct ConfigChange {
  ConfigEntry to;    // as the other configuration has it
  std::string from;  // the value before; empty: none was given
};

// The keys whose values differ.
std::vector<ConfigChange> Changes(const Config& from, const Config& to);

// Takes the hot keys of `from` over, and the origins of all keys whose value is the same afterwards.
void TakeHotKeys(const Config& from, Config& to);

}  // namespace flagos::daemon
