// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "server/common/status.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/runtime/install.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

// Executors call their process so, before and while they have a session.
constexpr std::string_view kExecutorName = "flagos-ex";

bool IsExecutor(const fs::path& process) {
  std::string name;
  std::ifstream(process / "comm") >> name;
  return name.starts_with(kExecutorName);
}

enum class Use { kNone, kMapped, kHidden };

Use UseOf(const fs::path& process, const std::string& folder) {
  std::ifstream maps(process / "maps");
  if (!maps) return errno == EACCES || errno == EPERM ? Use::kHidden : Use::kNone;
  for (std::string line; std::getline(maps, line);) {
    if (const size_t path = line.find('/'); path != std::string::npos && line.substr(path).starts_with(folder + "/")) {
      return Use::kMapped;
    }
  }
  return Use::kNone;
}

std::string Listed(const std::vector<int>& pids) { return absl::StrJoin(pids, ", "); }

}  // namespace

// The kernel's own account, not flagosd's: executors outlive a flagosd that stopped, and a job's embedded flagosd is
// known to nobody else.
Users UsersOf(const std::string& folder) {
  Users users;
  std::error_code error;
  const std::string real = fs::canonical(folder, error).string();
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(at->path().filename().string(), &pid)) continue;
    const Use use = UseOf(at->path(), real);
    if (use == Use::kMapped) users.pids.push_back(pid);
    if (use == Use::kHidden && IsExecutor(at->path())) users.hidden.push_back(pid);
  }
  std::ranges::sort(users.pids);
  std::ranges::sort(users.hidden);
  return users;
}

absl::Status CheckRemovable(const executor::Runtime& runtime) {
  const Users users = UsersOf(runtime.folder);
  if (!users.pids.empty()) {
    return Failure(absl::StatusCode::kFailedPrecondition, absl::StrCat("cannot remove ", runtime.id()),
                   absl::StrCat("processes have loaded it: ", Listed(users.pids)),
                   "stop flagosd and end their sessions (flagosctl ps -o wide) first");
  }
  if (!users.hidden.empty()) {
    return Failure(absl::StatusCode::kFailedPrecondition, absl::StrCat("cannot remove ", runtime.id()),
                   absl::StrCat("executors of other users may have loaded it: ", Listed(users.hidden)),
                   "run flagosctl as root, who can look");
  }
  const std::string root = runtime.folder.parent_path().string();
  if (::access(root.c_str(), W_OK) == 0) return absl::OkStatus();
  return SystemError(errno, absl::StrCat("cannot remove ", runtime.folder.string()), "run flagosctl as root");
}

absl::Status RemoveRuntime(const executor::Runtime& runtime) {
  FLAGOS_RETURN_IF_ERROR(CheckRemovable(runtime));
  // Out of the way in one step: no executor finds half of it.
  const fs::path gone = runtime.folder.parent_path() / absl::StrCat(".new-removed-", runtime.id());
  std::error_code error;
  fs::remove_all(gone, error);
  fs::rename(runtime.folder, gone, error);
  if (!error) fs::remove_all(gone, error);
  if (!error) return absl::OkStatus();
  return SystemError(error.value(), absl::StrCat("cannot remove ", runtime.folder.string()), "run flagosctl as root");
}

}  // namespace flagos::ctl
