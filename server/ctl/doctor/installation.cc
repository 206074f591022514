// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "server/common/fd.h"
#include "server/ctl/doctor/check.h"
#include "server/executor/manifest.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

Check CheckProgram(const fs::path& path) {
  if (::access(path.c_str(), X_OK) == 0) return {path.filename(), Verdict::kOk, path, ""};
  return {path.filename(), Verdict::kFail, absl::StrCat("there is no program ", path.string()),
          "install flagos whole: its programs lie side by side in one folder"};
}

// False also where we may not look.
bool IsThere(const fs::path& path) {
  std::error_code hidden;
  return fs::exists(path, hidden);
}

// A vendor's library, and the libtorch that its manifest names.
Check Vendor(const fs::path& folder) {
  const std::string name = absl::StrCat("vendor ", folder.filename().string());
  const auto manifest = executor::ReadManifest(folder / "manifest.toml");
  if (!manifest.ok()) return FailedCheck(name, manifest.status());
  if (const fs::path library = folder / manifest->library; !IsThere(library)) {
    return {name, Verdict::kFail, absl::StrCat("its library ", library.string(), " is missing, or not ours to read"),
            "install the vendor again, for all users"};
  }
  if (!manifest->hosts_torch) return {name, Verdict::kOk, "needs no libtorch", ""};
  if (manifest->torch_path.empty()) {
    return {name, Verdict::kOk, "takes the libtorch that flagosd names (or, embedded, the job's own)", ""};
  }
  for (const char* const library : {"libc10.so", "libtorch_cpu.so"}) {
    if (const fs::path path = fs::path(manifest->torch_path) / library; !IsThere(path)) {
      return {name, Verdict::kFail, absl::StrCat("its libtorch is missing: there is no ", path.string()),
              absl::StrCat("install it there, or name another folder in flagosd's configuration: [vendor.",
                           folder.filename().string(), "] libtorch")};
    }
  }
  return {name, Verdict::kOk, absl::StrCat("libtorch in ", manifest->torch_path), ""};
}

}  // namespace

void CheckInstallationIn(const std::string& folder, Checks& checks) {
  for (const char* const program : {"flagosd", "flagos-executor", "flagos-monitor"})
    checks.push_back(CheckProgram(fs::path(folder) / "bin" / program));
  std::error_code error;
  std::vector<fs::path> vendors;
  for (fs::directory_iterator at(fs::path(folder) / "vendors", error), end; !error && at != end; at.increment(error)) {
    if (IsThere(at->path() / "manifest.toml")) vendors.push_back(at->path());
  }
  std::sort(vendors.begin(), vendors.end());
  for (const fs::path& vendor : vendors) checks.push_back(Vendor(vendor));
  if (vendors.empty()) {
    checks.push_back({"vendors", Verdict::kFail, absl::StrCat("there is no vendor in ", folder, "/vendors"),
                      "install flagos whole, or start flagosd with --vendor-dir"});
  }
}

void CheckInstallation(Checks& checks) {
  CheckInstallationIn(fs::path(OwnExecutable()).parent_path().parent_path(), checks);
}

}  // namespace flagos::ctl
