// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/runtime/staging.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "server/common/status.h"
#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = ".new-";
constexpr mode_t kFileMode = 0644;
constexpr mode_t kFolderMode = 0755;
constexpr char kAdvice[] = "run flagosctl as a user who may write there (root), or make room";

// Makes a folder and those above it, with their mode whatever the umask is.
absl::Status MakeFolders(const fs::path& folder) {
  if (std::error_code hidden; folder.empty() || fs::exists(folder, hidden)) return absl::OkStatus();
  FLAGOS_RETURN_IF_ERROR(MakeFolders(folder.parent_path()));
  if (::mkdir(folder.c_str(), kFolderMode) != 0) {
    return errno == EEXIST ? absl::OkStatus() : SystemError(errno, "cannot make " + folder.string(), kAdvice);
  }
  if (::chmod(folder.c_str(), kFolderMode) == 0) return absl::OkStatus();
  return SystemError(errno, "cannot set the mode of " + folder.string(), kAdvice);
}

// The folder's lock; without one where another process has it.
UniqueFd Lock(const fs::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.get() >= 0 && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(fd) : UniqueFd();
}

// What an installation that was interrupted left: nobody holds its lock any more.
void RemoveAbandoned(const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    if (!at->path().filename().string().starts_with(kPrefix)) continue;
    const UniqueFd lock = Lock(at->path());
    std::error_code ignored;
    if (lock.get() >= 0) fs::remove_all(at->path(), ignored);
  }
}

}  // namespace

absl::StatusOr<Staging> Staging::Make(const fs::path& root) {
  FLAGOS_RETURN_IF_ERROR(MakeFolders(root));
  // One at a time from here to the lock of the new folder: nobody takes it for an abandoned one.
  const UniqueFd guard(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (guard.get() < 0 || ::flock(guard.get(), LOCK_EX) != 0) {
    return SystemError(errno, "cannot lock " + root.string(), kAdvice);
  }
  RemoveAbandoned(root);
  std::string name = (root / (std::string(kPrefix) + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) return SystemError(errno, "cannot make a folder in " + root.string(), kAdvice);
  Staging staging(name, Lock(name));
  if (::chmod(name.c_str(), kFolderMode) != 0) return SystemError(errno, "cannot set the mode of " + name, kAdvice);
  return staging;
}

Staging::Staging(Staging&& from) noexcept : path_(std::exchange(from.path_, {})), lock_(std::move(from.lock_)) {}

Staging::~Staging() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

absl::Status Staging::write(std::string_view name, std::string_view text) const {
  const fs::path file = path_ / name;
  const auto fd = CreateFile(file);
  if (!fd.ok()) return fd.status();
  return WriteAll(fd->get(), text, file);
}

absl::Status Staging::put(const fs::path& target) {
  // On the disk before it has its name: after a crash there is all of it or nothing.
  if (::syncfs(lock_.get()) != 0) return SystemError(errno, "cannot write " + path_.string(), kAdvice);
  if (::rename(path_.c_str(), target.c_str()) != 0) {
    if (errno != EEXIST && errno != ENOTEMPTY) return SystemError(errno, "cannot make " + target.string(), kAdvice);
    return Failure(absl::StatusCode::kAlreadyExists, absl::StrCat(target.filename().string(), " is installed already"),
                   absl::StrCat("it lies in ", target.string()),
                   "see flagosctl runtime verify; to install it anew, flagosctl runtime remove it first");
  }
  path_.clear();
  const UniqueFd root(::open(target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.get() >= 0 && ::fsync(root.get()) == 0) return absl::OkStatus();
  return SystemError(errno, "cannot write " + target.parent_path().string(), kAdvice);
}

absl::StatusOr<UniqueFd> CreateFile(const fs::path& path) {
  FLAGOS_RETURN_IF_ERROR(MakeFolders(path.parent_path()));
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (fd.get() < 0 || ::fchmod(fd.get(), kFileMode) != 0) {
    return SystemError(errno, "cannot create " + path.string(), kAdvice);
  }
  return fd;
}

absl::Status WriteAll(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "cannot write " + path.string(), kAdvice);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace flagos::ctl
