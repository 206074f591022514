// SPDX-License-Identifier: Apache-2.0
// Installed runtimes: the libtorch that executors load where nobody names another. `flagosctl runtime` installs them, a
// folder each:
//
//   ROOT/cpu-2.13.0+cpu/
//     runtime.toml       what it is: name, version, where from, when
//     sha256sums         of all files of lib, as sha256sum(1) writes and checks them
//     lib/torch/lib/     libtorch
//     lib/nvidia/*/lib/  what it needs, where its own search paths look
//
// A folder whose name begins with a dot is not finished, or about to go.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/executor/manifest.h"

namespace flagos::executor {

inline constexpr char kDefaultRuntimes[] = "/var/lib/flagos/runtimes";
inline constexpr char kRuntimesVariable[] = "FLAGOS_RUNTIMES";
inline constexpr char kRuntimeFacts[] = "runtime.toml";
inline constexpr char kRuntimeSums[] = "sha256sums";

// The folder of the runtimes: what FLAGOS_RUNTIMES names, else the default.
std::string RuntimesRoot();

enum class RuntimeState {
  kOk,
  kIncomplete,  // a part is missing: it was not installed by flagosctl, or somebody removed something
  kWritable,    // somebody else than its owner can change what executors load
};
const char* RuntimeStateName(RuntimeState state);

struct Runtime {
  std::string name;     // "cpu": what was asked for
  std::string version;  // "2.13.0+cpu": what PyTorch calls itself
  std::string source;
  std::string installed;  // RFC 3339
  std::filesystem::path folder;
  RuntimeState state = RuntimeState::kOk;
  std::string problem;  // what is wrong where the state is not kOk

  std::string id() const { return folder.filename().string(); }
  std::filesystem::path libtorch() const { return folder / "lib" / "torch" / "lib"; }
};

// All runtimes in `root`, by id; none where there is no such folder.
std::vector<Runtime> ListRuntimes(const std::string& root);

// Whether a vendor can use it: its version is one that the vendor was built for, and what the vendor preloads is there.
bool Fits(const Runtime& runtime, const Manifest& manifest);

// Which runtime `flagosctl runtime install` has for a vendor.
std::string RuntimeNameFor(const Manifest& manifest);

// The runtime for a vendor that hosts libtorch: one in good order that fits, before others the one of RuntimeNameFor().
// The error says how to install one.
absl::StatusOr<Runtime> FindRuntime(const std::string& root, const Manifest& manifest);

}  // namespace flagos::executor
