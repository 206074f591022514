// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <filesystem>

#include "server/ctl/exit_code.h"
#include "server/ctl/runtime/package.h"

namespace flagos::ctl {
namespace {

constexpr std::string_view kHash = "sha256=";
constexpr size_t kHashBytes = 32;

absl::Status Unfit(const Package& package, std::string_view why) {
  return Failure(absl::StatusCode::kFailedPrecondition, absl::StrCat("cannot install ", package.origin), why,
                 "take a wheel from where PyTorch publishes them");
}

// "PATH,sha256=HASH,SIZE". A path with a comma or a quote has quotes around it, and no library is named so.
absl::StatusOr<RecordedFile> Parse(const Package& package, const std::string& line) {
  const std::vector<std::string> parts = absl::StrSplit(line, ',');
  RecordedFile file{parts[0], {}};
  std::string encoded;
  if (parts.size() == 3 && parts[1].starts_with(kHash)) encoded = parts[1].substr(kHash.size());
  if (encoded.empty() || !absl::WebSafeBase64Unescape(encoded, &file.sha256) || file.sha256.size() != kHashBytes) {
    return Unfit(package, absl::StrCat("its RECORD has no SHA-256 of ", file.path));
  }
  return file;
}

// Libraries lie in torch/lib, in torch.libs or in a folder lib below nvidia.
bool IsLibrary(std::string_view path) {
  const size_t name = path.rfind('/') + 1;
  if (path.find(".so", name) == std::string_view::npos) return false;
  return path.starts_with("torch/lib/") || path.starts_with("torch.libs/") ||
         (path.starts_with("nvidia/") && path.find("/lib/") != std::string_view::npos);
}

bool StaysInside(const std::filesystem::path& path) {
  return path.is_relative() && std::ranges::find(path, "..") == path.end();
}

}  // namespace

absl::StatusOr<std::vector<RecordedFile>> RecordedLibraries(Package& package) {
  const auto record = package.text(package.info + "/RECORD");
  if (!record.ok()) return record.status();
  std::vector<RecordedFile> files;
  const std::vector<std::string> lines = absl::StrSplit(*record, absl::ByAnyChar("\r\n"), absl::SkipEmpty());
  for (const std::string& line : lines) {
    const std::string path = line.substr(0, line.find(','));
    if (!IsLibrary(path)) continue;
    if (!StaysInside(path)) {
      return Unfit(package, absl::StrCat("its file ", path, " would lie outside the runtime's folder"));
    }
    auto file = Parse(package, line);
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  return files;
}

}  // namespace flagos::ctl
