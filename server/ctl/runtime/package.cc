// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/runtime/package.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "server/common/status.h"
#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInfoSuffix = ".dist-info";

class Installed : public Package {
 public:
  explicit Installed(fs::path folder) : folder_(std::move(folder)) {}

  absl::Status read(const std::string& file, const Sink& sink) override {
    std::ifstream stream(folder_ / file, std::ios::binary);
    if (!stream) return SystemError(errno, absl::StrCat("cannot open ", (folder_ / file).string()), "install it anew");
    std::vector<char> buffer(1 << 20);
    while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || stream.gcount() > 0) {
      FLAGOS_RETURN_IF_ERROR(sink({buffer.data(), static_cast<size_t>(stream.gcount())}));
    }
    if (!stream.bad()) return absl::OkStatus();
    return SystemError(errno, absl::StrCat("cannot read ", (folder_ / file).string()), "see the kernel's log");
  }

 private:
  const fs::path folder_;
};

bool IsOfRuntime(std::string_view package) { return package == "torch" || package.starts_with("nvidia_"); }

// Names of what lies in a folder, in order.
std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  std::ranges::sort(entries);
  return entries;
}

// The site-packages of a virtual environment; the folder itself where it is none.
fs::path SitePackages(const fs::path& folder) {
  for (const fs::path& python : Entries(folder / "lib")) {
    fs::path packages = python / "site-packages";
    if (std::error_code hidden; python.filename().string().starts_with("python") && fs::exists(packages, hidden)) {
      return packages;
    }
  }
  return folder;
}

absl::Status AddFrom(const fs::path& folder, Packages& packages) {
  for (const fs::path& path : Entries(folder)) {
    const std::string file = path.filename();
    if (!IsOfRuntime(std::string_view(file).substr(0, file.find('-')))) continue;
    if (path.extension() == ".whl") {
      auto wheel = OpenWheel(path);
      if (!wheel.ok()) return wheel.status();
      packages.push_back(*std::move(wheel));
    } else if (file.ends_with(kInfoSuffix)) {
      packages.push_back(OpenInstalled(folder, file));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> Package::text(const std::string& file) {
  std::string whole;
  FLAGOS_RETURN_IF_ERROR(read(file, [&](std::string_view bytes) {
    whole.append(bytes);
    return absl::OkStatus();
  }));
  return whole;
}

bool TakeName(std::string_view info, Package& package) {
  const size_t dash = info.find('-');
  if (!info.ends_with(kInfoSuffix) || dash == std::string_view::npos || info.find('/') != std::string_view::npos) {
    return false;
  }
  package.info = info;
  package.name = info.substr(0, dash);
  info.remove_suffix(kInfoSuffix.size());
  package.version = info.substr(std::min(dash + 1, info.size()));
  return true;
}

std::unique_ptr<Package> OpenInstalled(const fs::path& site_packages, std::string_view info) {
  auto package = std::make_unique<Installed>(site_packages);
  TakeName(info, *package);
  package->origin = site_packages.string();
  return package;
}

absl::StatusOr<Packages> OpenPackages(const fs::path& from) {
  Packages packages;
  std::error_code hidden;
  const fs::path absolute = fs::absolute(from, hidden).lexically_normal();
  if (fs::is_regular_file(absolute, hidden)) {
    auto wheel = OpenWheel(absolute);
    if (!wheel.ok()) return wheel.status();
    packages.push_back(*std::move(wheel));
  } else {
    FLAGOS_RETURN_IF_ERROR(AddFrom(SitePackages(absolute), packages));
  }
  const auto torches = std::ranges::count_if(packages, [](const auto& package) { return package->name == "torch"; });
  if (torches == 1) return packages;
  return Failure(absl::StatusCode::kNotFound,
                 absl::StrCat("there ", torches == 0 ? "is no torch" : "is more than one torch", " in ", from.string()),
                 "it must be a wheel of torch, a folder with its wheel, a virtual environment or its site-packages",
                 "name another with --from");
}

}  // namespace flagos::ctl
