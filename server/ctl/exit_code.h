// SPDX-License-Identifier: Apache-2.0
// How a command ends: the exit code that scripts rely on, and the text that people read.
#pragma once

#include <absl/status/status.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace flagos::ctl {

// Documented in docs/operations.md. Never renumber.
enum class ExitCode : int {
  kOk = 0,
  kGeneric = 1,
  kUsage = 2,
  kUnreachable = 3,
  kNotFound = 4,
  kDenied = 5,
  kRefused = 6,  // by the state that something is in, a version, or a wrong configuration
  kTimedOut = 7,
  kPartial = 8,  // of several, some
};

ExitCode ExitCodeOf(const absl::Status& status);

// An error in three lines. Any of the last two may be empty.
absl::Status Failure(absl::StatusCode code, std::string_view what, std::string_view why, std::string_view advice);

// The error of a command that did a part of what it was asked to: its exit code is kPartial.
absl::Status Partial(std::string_view what, std::string_view why, std::string_view advice);

// The lines of an error, fit for a terminal: what, why where it is told, and what to do.
std::vector<std::string> FailureLines(const absl::Status& status);

// "flagosctl: what", then why and what to do, a line each. REQUIRES !status.ok().
void PrintFailure(std::ostream& out, const absl::Status& status);

}  // namespace flagos::ctl
