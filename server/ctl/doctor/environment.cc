// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "proto/routing/route_file.h"
#include "server/ctl/doctor/check.h"

namespace flagos::ctl {
namespace {

constexpr size_t kTokenDigits = 64;

std::string Value(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void CheckToken(Checks& checks) {
  const std::string token = Value("FLAGOS_TOKEN");
  if (token.empty()) return;
  if (token.size() == kTokenDigits && std::ranges::all_of(token, absl::ascii_isxdigit)) {
    checks.push_back({"FLAGOS_TOKEN", Verdict::kOk, "names a lease", ""});
  } else {
    checks.push_back({"FLAGOS_TOKEN", Verdict::kFail, "is no token of a lease",
                      "set it to the 64 hexadecimal digits that flagosctl lease open prints, or unset it"});
  }
}

// Switches that make a job slower than it need be, forgotten from a hunt for a fault.
void CheckSwitches(Checks& checks) {
  if (Value("FLAGOS_LAUNCH_BLOCKING") == "1") {
    checks.push_back(
        {"FLAGOS_LAUNCH_BLOCKING", Verdict::kWarn, "is 1: every call waits for its result", "unset it for speed"});
  }
  if (const std::string spin = Value("FLAGOS_SPIN_US"); !spin.empty()) {
    checks.push_back(
        {"FLAGOS_SPIN_US", Verdict::kWarn, absl::StrCat("is ", Printable(spin)), "unset it for the default"});
  }
}

// Whether libraries and operators are there is known only where a session is.
void CheckRoutes(Checks& checks) {
  constexpr const char* kVariable = "FLAGOS_BACKEND_CONFIG";
  const std::string path = Value(kVariable);
  if (path.empty()) return;
  const auto routes = ReadRouteFile(path, kVariable);
  if (routes.ok()) {
    checks.push_back({kVariable, Verdict::kOk, absl::StrCat("has ", routes.value().size(), " kernel routes"), ""});
  } else {
    checks.push_back({kVariable, Verdict::kFail, Printable(routes.error().message), "correct the file"});
  }
}

}  // namespace

void CheckEnvironment(Checks& checks) {
  CheckToken(checks);
  CheckSwitches(checks);
  CheckRoutes(checks);
}

}  // namespace flagos::ctl
