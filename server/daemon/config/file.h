// SPDX-License-Identifier: Apache-2.0
// The configuration file and its drop-ins.
#pragma once

#include <string>
#include <vector>

#include "server/daemon/config/config.h"

namespace flagos::daemon {

// Reads `path` and then conf.d/*.toml beside it, in lexical order, over `config`: what a later file says holds.
// Returns every mistake as "FILE:LINE: what; what to do": unknown keys (with the nearest known one), wrong types,
// missing units. Notes in `config` which files were read, and where each value stands. `config` is only meaningful
// where there is none.
std::vector<std::string> ReadConfigFiles(const std::string& path, Config& config);

}  // namespace flagos::daemon
