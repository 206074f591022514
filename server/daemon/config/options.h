// SPDX-License-Identifier: Apache-2.0
// The command line of flagosd. A flag beats its environment variable, which beats the file.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "server/daemon/config/sources.h"

namespace flagos::daemon {

// Exit codes, the same as flagosctl's where they mean the same.
enum ExitCode {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,    // command line or configuration
  kExitRefused = 6,  // another flagosd has the socket
};

struct CommandLine {
  Config config;
  ConfigSources sources;  // of `config`
};

// Reads flags, environment and files. An int is the exit code of a call that ends here: --help, --version,
// --check-config, and mistakes, which are told on standard error.
std::variant<CommandLine, int> ReadCommandLine(int argc, const char* const* argv);

}  // namespace flagos::daemon
