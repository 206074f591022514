// SPDX-License-Identifier: Apache-2.0
// Installing, checking and removing runtimes (server/executor/runtimes.h). Nothing here talks to a flagosd.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "server/executor/runtimes.h"

namespace flagos::ctl {

struct InstallRequest {
  std::string root;     // of the runtimes
  std::string name;     // "cpu" or "cuda"
  std::string version;  // "2.13.0" stands for all its builds
  std::string from;     // as OpenPackages() takes it; empty: pip fetches it
};

// The runtime that is now in place. Every file's hash was compared with the package's RECORD; after an error nothing
// is.
absl::StatusOr<executor::Runtime> InstallRuntime(const InstallRequest& request);

// What InstallRuntime() would install, "cpu-2.13.0+cpu" (or "cpu-2.13.0", where pip is to choose the build), as far as
// that can be known without fetching or writing anything: kAlreadyExists, kFailedPrecondition and kPermissionDenied as
// there.
absl::StatusOr<std::string> PlanRuntime(const InstallRequest& request);

// pip download of the wheels that `request` needs, into `folder`.
absl::Status DownloadWheels(const InstallRequest& request, const std::string& folder);

// What is not as it was installed, a file a line; empty where all is.
absl::StatusOr<std::vector<std::string>> VerifyRuntime(const executor::Runtime& runtime);

// Whether RemoveRuntime() would remove it.
absl::Status CheckRemovable(const executor::Runtime& runtime);

// kFailedPrecondition while a process has loaded something of it, and nothing is removed then.
absl::Status RemoveRuntime(const executor::Runtime& runtime);

// Processes that have something below the folder mapped.
struct Users {
  std::vector<int> pids;
  std::vector<int> hidden;  // executors of other users, whose mappings are not ours to read
};
Users UsersOf(const std::string& folder);

}  // namespace flagos::ctl
