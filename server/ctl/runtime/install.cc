// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/runtime/install.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "server/common/sha256.h"
#include "server/common/status.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/runtime/package.h"
#include "server/ctl/runtime/staging.h"
#include "server/executor/torch_library.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

constexpr char kLibraries[] = "lib";
constexpr char kCudaLibrary[] = "torch/lib/libtorch_cuda.so";
constexpr char kLibtorch[] = "torch/lib/libtorch_cpu.so";

absl::Status Unfit(const std::string& what, std::string_view why, std::string_view advice) {
  return Failure(absl::StatusCode::kFailedPrecondition, "cannot install " + what, why, advice);
}

absl::Status CopyFile(Package& package, const RecordedFile& file, const fs::path& to) {
  const auto fd = CreateFile(to);
  if (!fd.ok()) return fd.status();
  Sha256 hash;
  FLAGOS_RETURN_IF_ERROR(package.read(file.path, [&](std::string_view bytes) {
    hash.add(bytes);
    return WriteAll(fd->get(), bytes, to);
  }));
  if (hash.digest() == file.sha256) return absl::OkStatus();
  return Unfit(package.origin, absl::StrCat("the hash of ", file.path, " is not the one that its RECORD has"),
               "fetch it again");
}

struct Copied {
  std::vector<std::string> paths;
  std::string sums;  // the text of sha256sums
};

absl::StatusOr<Copied> CopyLibraries(const Packages& packages, const fs::path& folder) {
  Copied copied;
  for (const auto& package : packages) {
    const auto files = RecordedLibraries(*package);
    if (!files.ok()) return files.status();
    for (const RecordedFile& file : *files) {
      FLAGOS_RETURN_IF_ERROR(CopyFile(*package, file, folder / kLibraries / file.path));
      copied.paths.push_back(file.path);
      absl::StrAppend(&copied.sums, absl::BytesToHexString(file.sha256), "  ", kLibraries, "/", file.path, "\n");
    }
  }
  return copied;
}

// A build for CUDA does not load without its libraries, and one for the CPU has no kernels for a GPU.
absl::Status CheckKind(const InstallRequest& request, const Package& torch, const Copied& copied) {
  const auto has = [&](std::string_view path) { return std::ranges::find(copied.paths, path) != copied.paths.end(); };
  if (!has(kLibtorch)) return Unfit(torch.origin, "it has no libtorch_cpu.so", "take a wheel of torch for Linux");
  if (has(kCudaLibrary) == (request.name == "cuda")) return absl::OkStatus();
  return Unfit(request.name + " from " + torch.origin,
               request.name == "cuda" ? "this PyTorch is built without CUDA" : "this PyTorch is built for CUDA",
               request.name == "cuda" ? "take a wheel for CUDA"
                                      : "take PyTorch's wheel for the CPU, as from its index of those");
}

std::string Facts(const InstallRequest& request, const Package& torch) {
  std::ostringstream text;
  text << toml::table{{"name", request.name},
                      {"version", torch.version},
                      {"source", request.from.empty() ? "pip download" : torch.origin},
                      {"installed", absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", absl::Now(), absl::UTCTimeZone())}}
       << "\n";
  return text.str();
}

absl::StatusOr<const Package*> TorchOf(const InstallRequest& request, const Packages& packages) {
  const Package& torch = **std::ranges::find(packages, "torch", [](const auto& package) { return package->name; });
  if (executor::AcceptsVersion({request.version}, torch.version)) return &torch;
  return Unfit(torch.origin, absl::StrCat("it is torch ", torch.version, ", and ", request.version, " is wanted"),
               "name another with --from, or what you want with --version");
}

}  // namespace

absl::StatusOr<std::string> PlanRuntime(const InstallRequest& request) {
  fs::path place = fs::absolute(request.root);
  std::error_code hidden;
  while (!fs::exists(place, hidden) && place.has_relative_path()) place = place.parent_path();
  if (::access(place.c_str(), W_OK) != 0) {
    return SystemError(errno, absl::StrCat("cannot install into ", request.root), "run flagosctl as root");
  }
  std::string id = absl::StrCat(request.name, "-", request.version);
  if (!request.from.empty()) {
    const auto packages = OpenPackages(request.from);
    if (!packages.ok()) return packages.status();
    const auto torch = TorchOf(request, *packages);
    if (!torch.ok()) return torch.status();
    id = absl::StrCat(request.name, "-", (*torch)->version);
  }
  for (const executor::Runtime& runtime : executor::ListRuntimes(request.root)) {
    if (runtime.id() == id) {
      return Failure(absl::StatusCode::kAlreadyExists, absl::StrCat("cannot install ", id), "it is installed already",
                     absl::StrCat("remove it first: flagosctl runtime remove ", id));
    }
  }
  return id;
}

absl::StatusOr<executor::Runtime> InstallRuntime(const InstallRequest& request) {
  auto staging = Staging::Make(request.root);
  if (!staging.ok()) return staging.status();
  fs::path from = request.from;
  const fs::path wheels = staging->path() / "wheels";
  if (from.empty()) {
    from = wheels;
    FLAGOS_RETURN_IF_ERROR(DownloadWheels(request, wheels));
  }
  const auto packages = OpenPackages(from);
  if (!packages.ok()) return packages.status();
  const auto found = TorchOf(request, *packages);
  if (!found.ok()) return found.status();
  const Package& torch = **found;
  const auto copied = CopyLibraries(*packages, staging->path());
  if (!copied.ok()) return copied.status();
  FLAGOS_RETURN_IF_ERROR(CheckKind(request, torch, *copied));
  fs::remove_all(wheels);
  FLAGOS_RETURN_IF_ERROR(staging->write(executor::kRuntimeSums, copied->sums));
  FLAGOS_RETURN_IF_ERROR(staging->write(executor::kRuntimeFacts, Facts(request, torch)));
  const std::string id = absl::StrCat(request.name, "-", torch.version);
  FLAGOS_RETURN_IF_ERROR(staging->put(fs::absolute(request.root) / id));
  for (const executor::Runtime& runtime : executor::ListRuntimes(request.root)) {
    if (runtime.id() == id) return runtime;
  }
  return absl::AbortedError(absl::StrCat(id, " was removed as soon as it was installed; install it again"));
}

}  // namespace flagos::ctl
