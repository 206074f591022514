// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <cerrno>
#include <fstream>
#include <set>

#include "server/common/sha256.h"
#include "server/common/status.h"
#include "server/ctl/runtime/install.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHexDigits = 64;

}  // namespace

absl::StatusOr<std::vector<std::string>> VerifyRuntime(const executor::Runtime& runtime) {
  const fs::path sums = runtime.folder / executor::kRuntimeSums;
  std::ifstream lines(sums);
  if (!lines) return SystemError(errno, absl::StrCat("cannot read ", sums.string()), "install the runtime again");
  std::vector<std::string> problems;
  std::set<std::string> listed;
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < kHexDigits + 3) {
      problems.push_back(absl::StrCat(executor::kRuntimeSums, " has a line that is none"));
      continue;
    }
    const std::string file = line.substr(kHexDigits + 2);
    listed.insert(file);
    std::error_code hidden;
    if (!fs::exists(runtime.folder / file, hidden)) {
      problems.push_back(file + " is missing");
      continue;
    }
    const auto hash = Sha256OfFile(runtime.folder / file);
    if (!hash.ok()) return hash.status();
    if (absl::BytesToHexString(*hash) != line.substr(0, kHexDigits)) problems.push_back(file + " has changed");
  }
  if (listed.empty()) problems.push_back(absl::StrCat(executor::kRuntimeSums, " is empty"));
  std::error_code error;
  for (fs::recursive_directory_iterator at(runtime.folder / "lib", error), end; !error && at != end;
       at.increment(error)) {
    const std::string file = at->path().lexically_relative(runtime.folder).string();
    if (!at->is_directory() && !listed.contains(file)) problems.push_back(file + " was added");
  }
  return problems;
}

}  // namespace flagos::ctl
