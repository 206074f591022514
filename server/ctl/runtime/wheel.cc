// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <minizip/unzip.h>

#include <array>

#include "server/common/status.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/runtime/package.h"

namespace flagos::ctl {
namespace {

struct Close {
  void operator()(void* zip) const { ::unzClose(zip); }
};

class Wheel : public Package {
 public:
  explicit Wheel(unzFile zip) : zip_(zip) {}

  absl::Status read(const std::string& file, const Sink& sink) override {
    constexpr int kCaseSensitive = 1;
    if (::unzLocateFile(zip_.get(), file.c_str(), kCaseSensitive) != UNZ_OK) return damaged("it has no " + file);
    if (::unzOpenCurrentFile(zip_.get()) != UNZ_OK) return damaged("it does not open " + file);
    std::vector<char> buffer(1 << 20);
    int bytes = 0;
    while ((bytes = ::unzReadCurrentFile(zip_.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
      if (absl::Status status = sink({buffer.data(), static_cast<size_t>(bytes)}); !status.ok()) {
        ::unzCloseCurrentFile(zip_.get());
        return status;
      }
    }
    // Closing compares the check sum of what was read.
    if (::unzCloseCurrentFile(zip_.get()) != UNZ_OK || bytes < 0) return damaged(file + " does not unpack");
    return absl::OkStatus();
  }

  // Finds the *.dist-info among the names; false where there is none.
  bool find_info() {
    for (int at = ::unzGoToFirstFile(zip_.get()); at == UNZ_OK; at = ::unzGoToNextFile(zip_.get())) {
      std::array<char, 1024> entry{};
      if (::unzGetCurrentFileInfo64(zip_.get(), nullptr, entry.data(), entry.size() - 1, nullptr, 0, nullptr, 0) !=
          UNZ_OK) {
        return false;
      }
      const std::string_view path(entry.data());
      if (const size_t slash = path.find('/');
          path.substr(slash + 1) == "RECORD" && TakeName(path.substr(0, slash), *this)) {
        return true;
      }
    }
    return false;
  }

 private:
  absl::Status damaged(const std::string& why) const {
    return Failure(absl::StatusCode::kFailedPrecondition, absl::StrCat(origin, " is damaged"), why,
                   "fetch the wheel again");
  }

  const std::unique_ptr<void, Close> zip_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Package>> OpenWheel(const std::filesystem::path& wheel) {
  const unzFile zip = ::unzOpen64(wheel.c_str());
  std::unique_ptr<Wheel> package;
  if (zip != nullptr) package = std::make_unique<Wheel>(zip);
  if (package == nullptr || !package->find_info()) {
    return Failure(absl::StatusCode::kFailedPrecondition, absl::StrCat(wheel.string(), " is no wheel"),
                   package == nullptr ? "it cannot be read as a zip file, or it is cut short" : "it has no RECORD",
                   "fetch the wheel again, or name another with --from");
  }
  package->origin = wheel.string();
  return package;
}

}  // namespace flagos::ctl
