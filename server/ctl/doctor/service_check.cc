// SPDX-License-Identifier: Apache-2.0
// This machine as the checks of node.h and service.h want it told.
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>

#include "server/common/fd.h"
#include "server/ctl/config_files.h"
#include "server/ctl/doctor/check.h"
#include "server/ctl/doctor/node.h"
#include "server/ctl/doctor/service.h"
#include "server/daemon/audit/verify.h"
#include "server/daemon/config/sources.h"
#include "server/executor/runtimes.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

std::optional<Room> RoomOf(const std::string& folder) {
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0) return std::nullopt;
  return Room{.free = room.f_bavail * room.f_frsize,
              .total = room.f_blocks * room.f_frsize,
              .files_free = room.f_favail,
              .files_total = room.f_files};
}

// Where runtimes, the log and the audit log lie, each once; the files that the node's configuration names.
std::vector<std::string> WrittenFolders() {
  std::vector<std::string> folders = {"/var/lib/flagos", executor::RuntimesRoot()};
  daemon::Config config;
  if (daemon::SourcesOf(DefaultConfigFile()).load(config).empty()) {
    std::vector<std::string> files = {config.daemon.log.file, config.audit.file};
    if (!config.audit.file.empty()) files.push_back(daemon::AuditHeadFile(config.audit.file, config.audit.head));
    for (const std::string& file : files) {
      if (!file.empty()) folders.push_back(fs::path(file).parent_path().string());
    }
  }
  std::ranges::sort(folders);
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

}  // namespace

void CheckNode(Checks& checks) {
  struct stat own {};
  const bool known = ::stat(OwnExecutable().c_str(), &own) == 0;
  CheckNodeState({.root = "",
                  .folders = WrittenFolders(),
                  .room = RoomOf,
                  .now = absl::Now(),
                  .built = known ? absl::TimeFromTimespec(own.st_mtim) : absl::InfinitePast()},
                 checks);
}

void CheckService(const std::string& socket, Checks& checks) {
  CheckServiceFiles({.root = "", .socket = socket, .system = socket == kSystemSocket}, checks);
}

void CheckRunning(pid_t pid, Checks& checks) {
  RunningDaemon daemon{.root = "", .pid = pid, .installed = {}, .installed_since = {}};
  daemon.installed = (fs::path(OwnExecutable()).parent_path() / "flagosd").string();
  struct stat status {};
  // When it came to be there: its content may be older.
  if (::stat(daemon.installed.c_str(), &status) == 0) daemon.installed_since = absl::TimeFromTimespec(status.st_ctim);
  CheckRunningDaemon(daemon, checks);
}

}  // namespace flagos::ctl
