// SPDX-License-Identifier: Apache-2.0
// Python packages that hold libraries: a wheel, or what an installed package left in site-packages. Both have a
// RECORD: every file with its hash.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace flagos::ctl {

// Takes a piece of a file.
using Sink = std::function<absl::Status(std::string_view bytes)>;

class Package {
 public:
  virtual ~Package() = default;
  // Hands out a file, named as RECORD names it, piece by piece.
  virtual absl::Status read(const std::string& file, const Sink& sink) = 0;
  // A file as a whole; for small ones.
  absl::StatusOr<std::string> text(const std::string& file);

  std::string name;     // "torch"
  std::string version;  // "2.13.0+cpu"
  std::string info;     // "torch-2.13.0+cpu.dist-info"
  std::string origin;   // the wheel or folder, for people
};
using Packages = std::vector<std::unique_ptr<Package>>;

// Sets name and version from "NAME-VERSION.dist-info"; false where it is no such name.
bool TakeName(std::string_view info, Package& package);

absl::StatusOr<std::unique_ptr<Package>> OpenWheel(const std::filesystem::path& wheel);
std::unique_ptr<Package> OpenInstalled(const std::filesystem::path& site_packages, std::string_view info);

// The packages torch and nvidia_* of a wheel, a folder of wheels, a virtual environment or its site-packages. The error
// says what was looked for.
absl::StatusOr<Packages> OpenPackages(const std::filesystem::path& from);

// A line of a RECORD.
struct RecordedFile {
  std::string path;
  std::string sha256;  // 32 bytes
};

// The libraries among a package's files. A path that leaves the package's folder, or one without a hash, is an error.
absl::StatusOr<std::vector<RecordedFile>> RecordedLibraries(Package& package);

}  // namespace flagos::ctl
