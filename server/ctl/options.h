// SPDX-License-Identifier: Apache-2.0
// Options that every command takes.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <optional>
#include <string>

#include "server/ctl/listing.h"

namespace CLI {
class App;
}

namespace flagos::ctl {

struct Options {
  std::string socket;  // empty: DefaultSocket()
  View view;
  absl::Duration timeout = absl::Seconds(10);
};

// Declares the options on the program's App.
void AddOptions(CLI::App& app, Options& options);

// Declares --watch[=2s] on a command that lists; `interval` stays empty where it is not given.
void AddWatch(CLI::App& command, std::optional<absl::Duration>& interval);

// A CLI11 check: a positive duration with its unit.
std::string CheckDuration(const std::string& text);
// REQUIRES a text that CheckDuration accepted.
absl::Duration ParseDuration(const std::string& text);

inline constexpr char kSystemSocket[] = "/run/flagos/flagosd.sock";

// The socket of FLAGOS_ENDPOINT where that names one ("unix:///path"), else the system's.
absl::StatusOr<std::string> DefaultSocket(const char* endpoint);

}  // namespace flagos::ctl
