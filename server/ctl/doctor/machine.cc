// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proto/shm/layout.h"
#include "proto/shm/memfd.h"
#include "proto/socket/unix_socket.h"
#include "server/ctl/doctor/check.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace flagos::ctl {
namespace {

constexpr rlim_t kFewFiles = 1024;  // what a session of a job with many data loaders gets by with
constexpr rlim_t kTooFewFiles = 64;

Check SharedMemory() {
  Check check{"shared memory", Verdict::kOk, "sealed memfds can be made and mapped", ""};
  auto region = CreateRegion("flagos-doctor", kPage);
  const Error error =
      region.ok() ? Mapping::Map(region.value().get(), Access::kReadWrite, kPage).error() : region.error();
  if (!error.ok())
    check = {check.name, Verdict::kFail, error.message, "run a kernel of 3.17 or later that allows memfd_create"};
  return check;
}

Check Pidfd() {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!pidfd) {
    return {"pidfd", Verdict::kFail, absl::StrCat("pidfd_open fails: ", std::strerror(errno)),
            "run a kernel of 5.3 or later, and let the container's seccomp profile allow pidfd_open"};
  }
  auto pair = UnixPair();
  int peer = -1;
  socklen_t size = sizeof peer;
  if (pair.ok() && ::getsockopt(pair.value().first.get(), SOL_SOCKET, SO_PEERPIDFD, &peer, &size) == 0) {
    const UniqueFd owned(peer);
    return PeerCheck(true);
  }
  return PeerCheck(false);
}

Check Proc() {
  if (::access("/proc/self/fd", R_OK | X_OK) == 0) return {"/proc", Verdict::kOk, "mounted", ""};
  return {"/proc", Verdict::kFail, "not mounted, so regions cannot be passed read-only", "mount -t proc proc /proc"};
}

Check OpenFiles() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string found = absl::StrCat(limit.rlim_cur, " open files (at most ", limit.rlim_max, ")");
  const std::string advice = "raise it: ulimit -n 65536, or LimitNOFILE=65536 in the unit";
  if (limit.rlim_cur < kTooFewFiles) return {"limits", Verdict::kFail, found, advice};
  if (limit.rlim_max < kFewFiles) return {"limits", Verdict::kWarn, found, advice};
  return {"limits", Verdict::kOk, found, ""};
}

Check Cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  const int count = CPU_COUNT(&cores);
  const std::string found = absl::StrCat(count, count == 1 ? " core" : " cores");
  if (count > 1) return {"cores", Verdict::kOk, found, ""};
  return {"cores", Verdict::kWarn, found, "job and executor take turns on it; give them two cores or more"};
}

}  // namespace

// Nothing is wrong with a kernel that has not got it: Debian 12's own, for one.
Check PeerCheck(bool has_peer_pidfd) {
  if (has_peer_pidfd) return {"pidfd", Verdict::kOk, "pidfd_open and SO_PEERPIDFD work", ""};
  return {"pidfd", Verdict::kOk,
          "pidfd_open works; no SO_PEERPIDFD, so processes of other pid namespaces cannot attach (Linux 6.5 lets them)",
          ""};
}

void CheckMachine(Checks& checks) {
  for (const auto check : {SharedMemory, Pidfd, Proc, OpenFiles, Cores}) checks.push_back(check());
}

}  // namespace flagos::ctl
