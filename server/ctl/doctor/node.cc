// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/doctor/node.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace flagos::ctl {
namespace {

constexpr uint64_t kLittle = 64 << 20;  // bytes
constexpr uint64_t kNothing = 1 << 20;
constexpr absl::Duration kClockSlack = absl::Hours(24);  // time zones of file systems that keep local time

bool IsThere(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Limits of units' memory are the kernel's to hold, by this controller.
void CheckCgroups(const NodeState& node, Checks& checks) {
  if (!IsThere(node.root + "/run/systemd/system")) return;  // nobody to make units
  const std::string path = "/sys/fs/cgroup/cgroup.controllers";
  std::string line;
  if (!IsThere(node.root + path)) {
    return checks.push_back({"cgroups", Verdict::kWarn, "version 2 is not in force: systemd holds no limit of memory",
                             "boot with systemd.unified_cgroup_hierarchy=1"});
  }
  std::getline(std::ifstream(node.root + path), line);
  const std::vector<std::string> controllers = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (std::ranges::find(controllers, "memory") != controllers.end()) return;
  checks.push_back({"cgroups", Verdict::kWarn, absl::StrCat(path, " has no memory: limits of memory do not hold"),
                    "boot without cgroup_disable=memory; in a container, have it delegated"});
}

void CheckRoom(const NodeState& node, Checks& checks) {
  for (const std::string& folder : node.folders) {
    const auto room = node.room(folder);
    if (!room) continue;
    const bool no_files = room->files_total > 0 && room->files_free == 0;
    if (room->free >= kLittle && !no_files) continue;
    const bool full = room->free < kNothing || no_files;
    checks.push_back({absl::StrCat("disk of ", folder), full ? Verdict::kFail : Verdict::kWarn,
                      no_files ? "it has no room for another file"
                               : absl::StrCat(FormatBytes(room->free, Units::kIec), " of ",
                                              FormatBytes(room->total, Units::kIec), " are free"),
                      "free space: logs, audit records and runtimes are lost or refused without"});
  }
}

void CheckClock(const NodeState& node, Checks& checks) {
  if (node.now + kClockSlack < node.built) {
    checks.push_back(
        {"clock", Verdict::kFail,
         absl::StrCat("it says ", absl::FormatTime("%Y-%m-%d", node.now, absl::UTCTimeZone()),
                      ", and this program is of ", absl::FormatTime("%Y-%m-%d", node.built, absl::UTCTimeZone())),
         "set it: times of logs, audit records and metrics are wrong"});
  } else if (IsThere(node.root + "/run/systemd/timesync") &&
             !IsThere(node.root + "/run/systemd/timesync/synchronized")) {
    checks.push_back({"clock", Verdict::kWarn, "systemd-timesyncd has not synchronised it since the boot",
                      "see timedatectl status: times of logs and audit records may be wrong"});
  }
}

}  // namespace

void CheckNodeState(const NodeState& node, Checks& checks) {
  CheckCgroups(node, checks);
  CheckRoom(node, checks);
  CheckClock(node, checks);
}

}  // namespace flagos::ctl
