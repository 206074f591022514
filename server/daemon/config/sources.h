// SPDX-License-Identifier: Apache-2.0
// What a configuration is put together from: defaults, files, and what was given at the start. Kept, so that the same
// can be done again while flagosd runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/daemon/config/config.h"

namespace flagos::daemon {

// A value of the command line or the environment. It beats the files.
struct Override {
  std::string origin;  // "flag --warm", "environment FLAGOSD_WARM"
  // Sets the value, and returns its key.
  std::function<std::string(Config& config)> apply;
};

struct ConfigSources {
  Config base;  // defaults, and what no file can say
  std::optional<std::string> file;
  // A file that is read where it exists: the node's, which may be written after flagosd has started.
  std::optional<std::string> file_if_there;
  std::vector<Override> overrides;

  // The file to read now; nullopt: there is none.
  std::optional<std::string> file_now() const;
  // Every mistake, as ReadConfigFiles() and Validate() tell them. `config` is only meaningful where there is none.
  std::vector<std::string> load(Config& config) const;
};

// The sources of somebody who only has a file.
ConfigSources SourcesOf(const std::string& file);

// FailedPrecondition, in three lines: what, the first mistake and how many more there are, what to do. REQUIRES
// !mistakes.empty().
absl::Status WrongConfiguration(const std::vector<std::string>& mistakes, std::string_view advice);

}  // namespace flagos::daemon
