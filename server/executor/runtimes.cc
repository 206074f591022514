// SPDX-License-Identifier: Apache-2.0
#include "server/executor/runtimes.h"

#include <sys/stat.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "server/common/strings.h"
#include "server/executor/torch_library.h"

namespace flagos::executor {
namespace {

namespace fs = std::filesystem;

constexpr char kCudaLibrary[] = "libtorch_cuda.so";

bool IsThere(const fs::path& path) {
  std::error_code hidden;
  return fs::exists(path, hidden);
}

// Empty where only the owner can write the file or folder; else what is wrong.
std::string OpenToOthers(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return Cat(path.string(), " cannot be looked at: ", std::strerror(errno));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return Cat(path.string(), " is writable by others than its owner");
}

std::string FirstOpenToOthers(const fs::path& folder) {
  for (const fs::path& path : {folder.parent_path(), folder}) {
    if (std::string problem = OpenToOthers(path); !problem.empty()) return problem;
  }
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (std::string problem = OpenToOthers(at->path()); !problem.empty()) return problem;
  }
  return error ? Cat(folder.string(), " cannot be looked at: ", error.message()) : std::string();
}

void ReadFacts(Runtime& runtime) {
  const fs::path path = runtime.folder / kRuntimeFacts;
  try {
    const toml::table facts = toml::parse_file(path.string());
    runtime.name = facts["name"].value_or(std::string());
    runtime.version = facts["version"].value_or(std::string());
    runtime.source = facts["source"].value_or(std::string());
    runtime.installed = facts["installed"].value_or(std::string());
  } catch (const toml::parse_error& error) {
    runtime.problem = Cat(path.string(), " cannot be read: ", error.description());
  }
}

Runtime Inspect(const fs::path& folder) {
  Runtime runtime;
  runtime.folder = folder;
  ReadFacts(runtime);
  if (runtime.problem.empty() && (runtime.name.empty() || runtime.version.empty())) {
    runtime.problem = Cat((folder / kRuntimeFacts).string(), " names no runtime");
  }
  for (const fs::path& path :
       {folder / kRuntimeSums, runtime.libtorch() / "libc10.so", runtime.libtorch() / "libtorch_cpu.so"}) {
    if (runtime.problem.empty() && !IsThere(path)) runtime.problem = Cat("there is no ", path.string());
  }
  if (!runtime.problem.empty()) {
    runtime.state = RuntimeState::kIncomplete;
    return runtime;
  }
  runtime.problem = FirstOpenToOthers(folder);
  if (!runtime.problem.empty()) runtime.state = RuntimeState::kWritable;
  return runtime;
}

}  // namespace

std::string RuntimesRoot() {
  const char* const value = std::getenv(kRuntimesVariable);
  return value == nullptr || *value == '\0' ? kDefaultRuntimes : value;
}

const char* RuntimeStateName(RuntimeState state) {
  switch (state) {
    case RuntimeState::kOk: return "ok";
    case RuntimeState::kIncomplete: return "incomplete";
    case RuntimeState::kWritable: return "writable by others";
  }
  return "unknown";
}

std::vector<Runtime> ListRuntimes(const std::string& root) {
  std::vector<Runtime> runtimes;
  std::error_code error;
  const fs::path absolute = fs::absolute(root, error).lexically_normal();
  for (fs::directory_iterator at(absolute, error), end; !error && at != end; at.increment(error)) {
    std::error_code hidden;
    if (at->path().filename().string().starts_with('.') || !at->is_directory(hidden)) continue;
    runtimes.push_back(Inspect(at->path()));
  }
  std::ranges::sort(runtimes, {}, [](const Runtime& runtime) { return runtime.folder; });
  return runtimes;
}

bool Fits(const Runtime& runtime, const Manifest& manifest) {
  if (!manifest.hosts_torch || !AcceptsVersion(manifest.torch_versions, runtime.version)) return false;
  return std::ranges::all_of(manifest.preload,
                             [&](const std::string& library) { return IsThere(runtime.libtorch() / library); });
}

std::string RuntimeNameFor(const Manifest& manifest) {
  return std::ranges::find(manifest.preload, kCudaLibrary) == manifest.preload.end() ? "cpu" : "cuda";
}

absl::StatusOr<Runtime> FindRuntime(const std::string& root, const Manifest& manifest) {
  const std::string name = RuntimeNameFor(manifest);
  const Runtime* found = nullptr;
  std::string problem;
  const std::vector<Runtime> runtimes = ListRuntimes(root);
  for (const Runtime& runtime : runtimes) {
    if (!Fits(runtime, manifest)) continue;
    if (runtime.state != RuntimeState::kOk) {
      problem = Cat(" (", runtime.id(), ": ", RuntimeStateName(runtime.state), ")");
    } else if (found == nullptr || (found->name != name && runtime.name == name)) {
      found = &runtime;
    }
  }
  if (found != nullptr) return *found;
  return absl::NotFoundError(Cat("vendor ", manifest.name,
                                 " needs libtorch, nobody says where it is, and no runtime in ", root, " fits", problem,
                                 "; install one on flagosd's machine with: flagosctl runtime install ", name,
                                 " (torch ", Listed(manifest.torch_versions),
                                 "), or name the folder that holds libtorch_cpu.so with --libtorch (in flagosd's "
                                 "configuration: libtorch)"));
}

}  // namespace flagos::executor
