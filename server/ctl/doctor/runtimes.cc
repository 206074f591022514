// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "server/ctl/doctor/check.h"
#include "server/ctl/vendors.h"
#include "server/executor/runtimes.h"

namespace flagos::ctl {
namespace {

using executor::Manifest;
using executor::Runtime;
using executor::RuntimeState;

void CheckState(const Runtime& runtime, Checks& checks) {
  const std::string name = absl::StrCat("runtime ", runtime.id());
  switch (runtime.state) {
    case RuntimeState::kOk: return;
    case RuntimeState::kIncomplete:
      checks.push_back({name, Verdict::kFail, runtime.problem,
                        absl::StrCat("flagosctl runtime remove ", runtime.id(), ", and install it again")});
      return;
    case RuntimeState::kWritable:
      checks.push_back({name, Verdict::kFail, absl::StrCat(runtime.problem, ", so no executor loads it"),
                        absl::StrCat("find out who changed that; then flagosctl runtime remove ", runtime.id(),
                                     ", and install it again")});
      return;
  }
}

// A vendor whose manifest names no libtorch, while runtimes are installed or flagosd's configuration may name one.
Check CheckVendor(const Manifest& manifest, const std::vector<Runtime>& runtimes, const std::string& root) {
  const std::string name = absl::StrCat("runtime of vendor ", manifest.name);
  if (const auto found = executor::FindRuntime(root, manifest); found.ok()) {
    return {name, Verdict::kOk, found->folder.string(), ""};
  }
  std::vector<std::string> others;
  others.reserve(runtimes.size());
  for (const Runtime& runtime : runtimes) others.push_back(runtime.id());
  // It may well work without: flagosd's configuration may name a libtorch, and a job's embedded flagosd has the job's.
  return {name, Verdict::kWarn,
          others.empty()
              ? absl::StrCat("there is none in ", root)
              : absl::StrCat("none that can be used fits torch ", absl::StrJoin(manifest.torch_versions, ", "),
                             "; there is ", absl::StrJoin(others, ", ")),
          absl::StrCat("flagosctl runtime install ", executor::RuntimeNameFor(manifest),
                       ", unless flagosd's configuration names a libtorch")};
}

}  // namespace

void CheckRuntimes(const std::string& vendors, const std::string& root, Checks& checks) {
  const std::vector<Runtime> runtimes = executor::ListRuntimes(root);
  for (const Runtime& runtime : runtimes) CheckState(runtime, checks);
  for (const Manifest& manifest : ReadVendors(vendors)) {
    if (manifest.hosts_torch && manifest.torch_path.empty()) checks.push_back(CheckVendor(manifest, runtimes, root));
  }
}

}  // namespace flagos::ctl
