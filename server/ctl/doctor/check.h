// SPDX-License-Identifier: Apache-2.0
// Checks of flagosctl doctor. Each group looks at one thing that must be right and says what it found and what to do.
#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "server/ctl/commands.h"

namespace flagos::ctl {

enum class Verdict { kOk, kWarn, kFail };

struct Check {
  std::string name;
  Verdict verdict = Verdict::kOk;
  std::string found;
  std::string advice;  // empty where there is nothing to do
};
using Checks = std::vector<Check>;

const char* VerdictName(Verdict verdict);

// A failed check from an error in three lines.
Check FailedCheck(const std::string& name, const absl::Status& status);

// The kernel and this process's limits: sealed memory, pidfds, /proc, open files, cores.
void CheckMachine(Checks& checks);
// The programs and vendors that were installed with this one.
void CheckInstallation(Checks& checks);
// The environment that a job would start with.
void CheckEnvironment(Checks& checks);
// The node that flagosd serves: cgroups, room on its disks, its clock.
void CheckNode(Checks& checks);
// flagosd as a service: the socket's mode, and units that hide the package's.
void CheckService(const std::string& socket, Checks& checks);
// Whether the flagosd of this pid is the program that is installed beside this one.
void CheckRunning(pid_t pid, Checks& checks);
// Whether the kernel names the processes at sockets' other ends beyond doubt.
Check PeerCheck(bool has_peer_pidfd);
// The daemon at the endpoint: reachable, of a version in common, its devices, executors and sessions.
void CheckDaemon(const Program& program, Checks& checks);

// What an NVIDIA GPU needs of this machine; says nothing where the vendor cuda is not installed.
void CheckNvidia(Checks& checks);

// The runtimes that executors load where nobody names a libtorch: missing, of a wrong version, writable by others. Says
// nothing where no vendor takes one. Of one folder of vendors and one of runtimes.
void CheckRuntimes(const std::string& vendors, const std::string& root, Checks& checks);

// Of one installation, and for tests: `folder` holds bin and vendors.
void CheckInstallationIn(const std::string& folder, Checks& checks);

}  // namespace flagos::ctl
