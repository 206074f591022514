// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/debug/system.h"

#include <absl/strings/str_cat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

namespace flagos::ctl {
namespace {

constexpr size_t kMostOfAFile = 64 << 10;
constexpr char kJournal[] =
    "journalctl --unit=flagosd.service --no-pager --quiet --lines=2000 --output=short-iso 2>/dev/null";

void AddFile(std::string& out, const char* path) {
  std::ifstream in(path);
  if (!in) return absl::StrAppend(&out, "== ", path, ": not readable\n\n");
  std::string text(kMostOfAFile, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  absl::StrAppend(&out, "== ", path, "\n", text, text.ends_with('\n') ? "\n" : "\n\n");
}

void AddRoom(std::string& out, const char* folder) {
  struct statvfs room {};
  if (::statvfs(folder, &room) != 0) return;
  absl::StrAppend(&out, folder, ": ", room.f_bavail * room.f_frsize, " of ", room.f_blocks * room.f_frsize,
                  " bytes free\n");
}

}  // namespace

std::string DescribeSystem() {
  std::string out;
  utsname name{};
  ::uname(&name);
  absl::StrAppend(&out, "kernel: ", name.sysname, " ", name.release, " ", name.version, " ", name.machine, "\n\n");
  for (const char* const folder : {"/", "/run", "/tmp", "/dev/shm", "/var/lib/flagos", "/var/log/flagos"}) {
    AddRoom(out, folder);
  }
  out += "\n";
  for (const char* const path : {"/etc/os-release", "/proc/meminfo", "/proc/loadavg", "/proc/self/limits",
                                 "/proc/self/cgroup", "/sys/fs/cgroup/cgroup.controllers", "/proc/sys/fs/file-nr",
                                 "/proc/sys/kernel/pid_max", "/proc/pressure/memory", "/sys/devices/system/cpu/online",
                                 "/proc/self/mountinfo", "/proc/driver/nvidia/version"}) {
    AddFile(out, path);
  }
  return out;
}

std::string TailOf(const std::string& file, size_t bytes) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<size_t>(std::max<std::streamoff>(in.tellg(), 0));
  const size_t from = size > bytes ? size - bytes : 0;
  in.seekg(static_cast<std::streamoff>(from));
  std::ostringstream text;
  text << in.rdbuf();
  std::string tail = text.str();
  if (from > 0) tail.erase(0, tail.find('\n') + 1);
  return tail;
}

std::string TailOfJournal() {
  struct Close {
    void operator()(FILE* file) const { ::pclose(file); }
  };
  std::string text;
  if (const std::unique_ptr<FILE, Close> pipe{::popen(kJournal, "re")}) {
    char buffer[4096];
    while (const size_t size = std::fread(buffer, 1, sizeof buffer, pipe.get())) text.append(buffer, size);
  }
  return text;
}

}  // namespace flagos::ctl
