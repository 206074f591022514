// SPDX-License-Identifier: Apache-2.0
// What is looked at of flagosd as a service, apart from what it means, so that tests can say what there is. Each check
// says nothing where all is well, and where the thing is not there to be looked at.
#pragma once

#include <absl/time/time.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "server/ctl/doctor/check.h"

namespace flagos::ctl {

// The socket's mode and group, and units of the administrator's that stand before those of the package.
struct ServiceFiles {
  std::string root;     // of /etc, /lib, /usr and /run; "" on a real machine
  std::string socket;   // below it
  bool system = false;  // it is the service's, which belongs to the group flagos
};
void CheckServiceFiles(const ServiceFiles& files, Checks& checks);

// Whether the flagosd that answers is the program that is installed.
struct RunningDaemon {
  std::string root;       // of /proc
  pid_t pid = 0;          // as flagosd says; another's, where it runs in another pid namespace
  std::string installed;  // path of the program; empty: not known
  std::optional<absl::Time> installed_since;
};
void CheckRunningDaemon(const RunningDaemon& daemon, Checks& checks);

}  // namespace flagos::ctl
