// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/containers/cgroup.h"

#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

constexpr std::string_view kUnified = "0::";

absl::Status Hidden(std::string_view why) {
  return absl::PermissionDeniedError(
      Cat("flagosd cannot tell the caller's container: ", why, "; run flagosd in the host's cgroup namespace"));
}

uint64_t IdOf(const std::string& path) {
  for (const char* const mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    struct stat status {};
    if (::stat(Cat(mount, path, "/cgroup.procs").c_str(), &status) == 0 &&
        ::stat(Cat(mount, path).c_str(), &status) == 0) {
      return status.st_ino;
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::string> ParseCgroup(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kUnified)) continue;
    const std::string path = line.substr(kUnified.size());
    if (path.empty() || path[0] != '/') return Hidden("its cgroup has no path");
    if (path.starts_with("/..")) return Hidden("it lies outside of flagosd's cgroup namespace");
    return path;
  }
  return Hidden("the kernel has no unified hierarchy of cgroups");
}

absl::StatusOr<Cgroup> CgroupOf(pid_t pid) {
  std::ifstream file(Cat("/proc/", pid, "/cgroup"));
  std::ostringstream text;
  text << file.rdbuf();
  auto path = ParseCgroup(text.str());
  if (!path.ok()) return path.status();
  return Cgroup{*path, IdOf(*path)};
}

bool IsWithin(const Cgroup& inner, const Cgroup& outer) {
  if (inner.path == outer.path) return inner.id == outer.id;
  // The outer one is still there while something is in it.
  return outer.path == "/" ||
         (inner.path.starts_with(outer.path + "/") && (outer.id == 0 || IdOf(outer.path) == outer.id));
}

}  // namespace flagos::daemon
