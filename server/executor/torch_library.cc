// SPDX-License-Identifier: Apache-2.0
#include "server/executor/torch_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::executor {
namespace {

// libtorch tells its version in one number: major, minor and patch in the upper three bytes.
std::string LoadedVersion() {
  const auto version_of = reinterpret_cast<uint64_t (*)()>(::dlsym(RTLD_DEFAULT, "aoti_torch_abi_version"));
  if (version_of == nullptr) return {};
  const uint64_t number = version_of();
  return Cat(number >> 56, ".", (number >> 48) & 0xff, ".", (number >> 40) & 0xff);
}

}  // namespace

std::string Listed(const std::vector<std::string>& versions) {
  std::string all;
  for (const std::string& version : versions) all += (all.empty() ? "" : ", ") + version;
  return all.empty() ? "of any version" : all;
}

bool AcceptsVersion(const std::vector<std::string>& versions, const std::string& version) {
  return versions.empty() || std::ranges::any_of(versions, [&](const std::string& accepted) {
           return version == accepted || version.starts_with(accepted + ".") || version.starts_with(accepted + "+");
         });
}

absl::Status LoadGlobally(const std::string& path) {
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return absl::OkStatus();
  const char* const why = ::dlerror();
  return absl::FailedPreconditionError(Cat("cannot load ", path, ": ", why == nullptr ? "unknown reason" : why,
                                           "; install what it needs, or a version that fits this machine"));
}

absl::StatusOr<std::string> LoadTorch(const std::string& folder, const std::vector<std::string>& versions,
                                      const std::string& wanted_by) {
  const std::string advice =
      Cat("; name the folder that holds libtorch_cpu.so with --libtorch (in flagosd's configuration: "
          "libtorch), or install torch ",
          Listed(versions));
  for (const char* const name : {"libc10.so", "libtorch_cpu.so"}) {
    std::error_code ignored;
    const std::filesystem::path path = std::filesystem::absolute(std::filesystem::path(folder) / name, ignored);
    if (!std::filesystem::exists(path, ignored)) {
      return absl::NotFoundError(Cat("vendor ", wanted_by, " needs libtorch, but there is no ", path.string(), advice));
    }
    FLAGOS_RETURN_IF_ERROR(LoadGlobally(path.string()));
  }
  const std::string version = LoadedVersion();
  if (!AcceptsVersion(versions, version)) {
    return absl::FailedPreconditionError(Cat("the libtorch in ", folder, " is version ",
                                             version.empty() ? std::string("unknown (older than 2.9)") : version,
                                             ", but vendor ", wanted_by, " was built for ", Listed(versions), advice));
  }
  return version;
}

}  // namespace flagos::executor
