// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/doctor/service.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnits[] = {"flagosd.service", "flagosd.socket", "flagosd-containers.socket"};
constexpr const char* kPackaged[] = {"/lib/systemd/system/", "/usr/lib/systemd/system/"};
constexpr const char* kBefore[] = {"/etc/systemd/system/", "/run/systemd/system/"};  // in this order
constexpr mode_t kGroupMayUse = S_IRGRP | S_IWGRP;

std::optional<gid_t> GroupOf(const std::string& root, const std::string& name) {
  std::ifstream groups(root + "/etc/group");
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, ':');
    if (fields.size() >= 3 && fields[0] == name)
      return static_cast<gid_t>(std::strtoul(fields[2].c_str(), nullptr, 10));
  }
  return std::nullopt;
}

bool IsThere(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

void CheckSocket(const ServiceFiles& files, Checks& checks) {
  struct stat status {};
  const std::string path = files.root + files.socket;
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  // A container's, which everybody may open: it admits by the token beside it.
  if (IsThere((fs::path(path).parent_path() / "token").string())) return;
  const std::string mode = absl::StrFormat("%s has mode %04o", files.socket, status.st_mode & 07777);
  const char* const advice = files.system ? "systemctl restart flagosd.socket puts it right; see systemctl cat "
                                            "flagosd.socket for who says otherwise (SocketMode, SocketGroup)"
                                          : "chmod 660 it, or restart flagosd";
  if ((status.st_mode & S_IWOTH) != 0) {
    checks.push_back({"socket", Verdict::kWarn, absl::StrCat(mode, ": every user of the machine may compute"), advice});
  } else if ((status.st_mode & kGroupMayUse) != kGroupMayUse) {
    checks.push_back({"socket", Verdict::kWarn, absl::StrCat(mode, ": its group may not use it"), advice});
  }
  if (!files.system) return;
  const auto group = GroupOf(files.root, "flagos");
  if (group && *group != status.st_gid) {
    checks.push_back({"socket's group", Verdict::kWarn,
                      absl::StrCat(files.socket, " belongs to group ", status.st_gid, ", and not to flagos (", *group,
                                   "): who is in that may not compute"),
                      advice});
  }
}

void CheckUnit(const std::string& root, const std::string& unit, Checks& checks) {
  std::string packaged;
  for (const char* const folder : kPackaged) {
    if (packaged.empty() && IsThere(absl::StrCat(root, folder, unit))) packaged = absl::StrCat(folder, unit);
  }
  if (packaged.empty()) return;
  for (const char* const folder : kBefore) {
    const std::string name = folder + unit;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(root + name, error);
    if (!fs::exists(status)) continue;
    if (fs::is_symlink(status) && fs::read_symlink(root + name, error) == "/dev/null") {
      checks.push_back({unit, Verdict::kWarn, absl::StrCat(name, " masks it: it cannot be started"),
                        absl::StrCat("systemctl unmask ", unit)});
    } else if (fs::equivalent(root + name, root + packaged, error)) {
      continue;
    } else {
      checks.push_back({unit, Verdict::kWarn,
                        absl::StrCat(name, " stands before the package's ", packaged, ": upgrades do not change it"),
                        absl::StrCat("keep changes in a drop-in (systemctl edit ", unit, ") and remove it")});
    }
    return;
  }
}

// When a process started, by its stat and the machine's.
std::optional<absl::Time> StartOf(const std::string& root, const std::string& process) {
  std::string stat;
  std::getline(std::ifstream(process + "/stat"), stat);
  const size_t name = stat.rfind(')');  // the name may have spaces
  if (name == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name + 1), ' ', absl::SkipEmpty());
  constexpr size_t kStart = 19;  // starttime, the 22nd of all
  if (fields.size() <= kStart) return std::nullopt;
  std::ifstream machine(root + "/proc/stat");
  for (std::string line; std::getline(machine, line);) {
    if (!line.starts_with("btime ")) continue;
    const double ticks = std::strtod(fields[kStart].c_str(), nullptr);
    return absl::FromUnixSeconds(std::strtoll(line.c_str() + 6, nullptr, 10)) +
           absl::Seconds(ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
  return std::nullopt;
}

}  // namespace

void CheckServiceFiles(const ServiceFiles& files, Checks& checks) {
  CheckSocket(files, checks);
  for (const char* const unit : kUnits) CheckUnit(files.root, unit, checks);
}

void CheckRunningDaemon(const RunningDaemon& daemon, Checks& checks) {
  constexpr absl::Duration kSlack = absl::Seconds(2);  // the boot's time is told in whole seconds
  constexpr const char* kAdvice = "restart it: running sessions go on (systemctl restart flagosd)";
  const std::string process = absl::StrCat(daemon.root, "/proc/", daemon.pid);
  std::string name;
  std::getline(std::ifstream(process + "/comm"), name);
  if (name != "flagosd") return;
  std::error_code hidden;
  const std::string program = fs::read_symlink(process + "/exe", hidden).string();
  if (program.ends_with(" (deleted)")) {
    return checks.push_back({"running flagosd", Verdict::kWarn,
                             absl::StrCat("pid ", daemon.pid, " runs a program that was replaced or removed"),
                             kAdvice});
  }
  if (!hidden && program != daemon.installed) return;  // another installation's
  const auto started = StartOf(daemon.root, process);
  if (started && daemon.installed_since && *started + kSlack < *daemon.installed_since) {
    checks.push_back({"running flagosd", Verdict::kWarn,
                      absl::StrCat("pid ", daemon.pid, " started before ", daemon.installed, " was installed"),
                      kAdvice});
  }
}

}  // namespace flagos::ctl
