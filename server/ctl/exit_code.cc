// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/exit_code.h"

#include <absl/strings/cord.h>
#include <absl/strings/str_split.h>

#include "server/ctl/text.h"

namespace flagos::ctl {
namespace {

constexpr char kPartialMark[] = "flagos/partial";

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.GetPayload(kPartialMark)) return ExitCode::kPartial;
  switch (status.code()) {
    case absl::StatusCode::kOk: return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument: return ExitCode::kUsage;
    case absl::StatusCode::kUnavailable: return ExitCode::kUnreachable;
    case absl::StatusCode::kNotFound: return ExitCode::kNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated: return ExitCode::kDenied;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists: return ExitCode::kRefused;
    case absl::StatusCode::kDeadlineExceeded: return ExitCode::kTimedOut;
    default: return ExitCode::kGeneric;
  }
}

absl::Status Failure(absl::StatusCode code, std::string_view what, std::string_view why, std::string_view advice) {
  std::string text(what);
  for (const std::string_view line : {why, advice}) {
    if (!line.empty()) text.append("\n").append(line);
  }
  return {code, text};
}

absl::Status Partial(std::string_view what, std::string_view why, std::string_view advice) {
  absl::Status status = Failure(absl::StatusCode::kUnknown, what, why, advice);
  status.SetPayload(kPartialMark, absl::Cord());
  return status;
}

std::vector<std::string> FailureLines(const absl::Status& status) {
  std::vector<std::string> lines = absl::StrSplit(status.message(), '\n', absl::SkipEmpty());
  for (std::string& line : lines) line = Printable(line);
  // flagosd writes short ones in one line: "what, and why; what to do".
  if (lines.size() == 1) {
    if (const size_t at = lines[0].rfind("; "); at != std::string::npos)
      lines = {lines[0].substr(0, at), lines[0].substr(at + 2)};
  }
  return lines;
}

void PrintFailure(std::ostream& out, const absl::Status& status) {
  const char* before = "flagosctl: ";
  for (const std::string& line : FailureLines(status)) {
    out << before << line << "\n";
    before = "  ";
  }
}

}  // namespace flagos::ctl
