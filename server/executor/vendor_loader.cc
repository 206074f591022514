// SPDX-License-Identifier: Apache-2.0
#include "server/executor/vendor_loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/executor/manifest.h"
#include "server/executor/runtimes.h"
#include "server/executor/torch_library.h"

namespace flagos::executor {
namespace {

absl::Status Preload(const Manifest& manifest, const std::string& libtorch) {
  for (const std::string& name : manifest.preload) {
    const std::filesystem::path path = std::filesystem::path(libtorch) / name;  // `name` alone where it is absolute
    if (path.is_relative()) {
      return absl::InvalidArgumentError(Cat("vendor ", manifest.name, " preloads ", name,
                                            ", which is to lie beside libtorch, but "
                                            "nobody says where that is; give its absolute path in the manifest"));
    }
    FLAGOS_RETURN_IF_ERROR(LoadGlobally(path.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<vendor::Vendor>> OpenLibrary(const std::string& path, const std::string& name) {
  std::error_code hidden;
  if (!std::filesystem::exists(path, hidden) && !hidden) {  // else dlopen() tells more
    return absl::NotFoundError(Cat("vendor ", name, " has no library ", path, "; build or install it"));
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return absl::FailedPreconditionError(
        Cat("cannot load vendor ", name, ": ", why == nullptr ? "unknown reason" : why,
            "; a library that it needs is missing or of another version than it was built with"));
  }
  const auto entry_of = reinterpret_cast<vendor::Entry (*)()>(::dlsym(library, vendor::kEntrySymbol));
  if (entry_of == nullptr) {
    return absl::FailedPreconditionError(
        Cat(path, " does not export ", vendor::kEntrySymbol,
            ", so it is no vendor; add FLAGOS_REGISTER_VENDOR to it, or correct the manifest"));
  }
  const vendor::Entry entry = entry_of();
  if (entry.interface_version != vendor::kInterfaceVersion) {
    return absl::FailedPreconditionError(Cat("vendor ", name, " was built for version ", entry.interface_version,
                                             " of the vendor interface and this executor has version ",
                                             vendor::kInterfaceVersion, "; install both from one release"));
  }
  std::unique_ptr<vendor::Vendor> made(entry.create());
  if (made == nullptr || name != made->name()) {
    return absl::FailedPreconditionError(Cat(path, " is vendor ", made == nullptr ? "nobody" : made->name(), ", not ",
                                             name, "; correct the manifest's library"));
  }
  return made;
}

}  // namespace

absl::StatusOr<std::unique_ptr<vendor::Vendor>> LoadVendor(const std::string& name, const std::string& dir,
                                                           const std::string& libtorch) {
  if (name.empty() || name.find_first_of("/.") != std::string::npos) {
    return absl::InvalidArgumentError(Cat("\"", name, "\" is no vendor's name; give the name of a folder in ", dir));
  }
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(std::filesystem::path(dir) / name, ignored);
  const auto manifest = ReadManifest((folder / "manifest.toml").string());
  if (!manifest.ok()) return manifest.status();
  if (manifest->name != name) {
    return absl::InvalidArgumentError(Cat("the manifest in ", folder.string(), " is that of vendor ", manifest->name,
                                          "; a vendor's folder must have its name"));
  }
  for (const auto& [variable, value] : manifest->environment) ::setenv(variable.c_str(), value.c_str(), /*replace=*/0);
  for (const std::string& file : manifest->interpose) {
    FLAGOS_RETURN_IF_ERROR(LoadGlobally((folder / file).string()));
  }
  std::string torch_folder;
  if (manifest->hosts_torch) {
    std::string path = libtorch.empty() ? manifest->torch_path : libtorch;
    if (path.empty()) {
      const auto runtime = FindRuntime(RuntimesRoot(), *manifest);
      if (!runtime.ok()) return runtime.status();
      path = runtime->libtorch().string();
    }
    const auto version = LoadTorch(path, manifest->torch_versions, name);
    if (!version.ok()) return version.status();
    torch_folder = std::filesystem::absolute(path, ignored).string();
    log::Debug("libtorch loaded", {{"path", torch_folder}, {"version", *version}});
  }
  FLAGOS_RETURN_IF_ERROR(Preload(*manifest, torch_folder));
  return OpenLibrary((folder / manifest->library).string(), name);
}

}  // namespace flagos::executor
