// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/clients/socket_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

constexpr int kBacklog = 1024;
constexpr const char* kAdvice = "choose a socket in a folder that this user may write to (--socket, [daemon] listen)";

std::string LockPath(const std::string& path) { return path + ".lock"; }

std::string ReadPid(int lock) {
  char text[32] = {};
  const ssize_t size = ::pread(lock, text, sizeof text - 1, 0);
  const std::string pid(text, size > 0 ? static_cast<size_t>(size) : 0);
  return pid.empty() ? "of another user" : "with pid " + pid.substr(0, pid.find_first_not_of("0123456789"));
}

absl::StatusOr<UniqueFd> TakeLock(const std::string& path) {
  const std::string lock_path = LockPath(path);
  for (;;) {
    UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!lock) return SystemError(errno, Cat("cannot open ", lock_path), kAdvice);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return SystemError(errno, Cat("cannot lock ", lock_path), kAdvice);
      return absl::AlreadyExistsError(Cat("another flagosd, ", ReadPid(lock.get()), ", has the socket ", path,
                                          "; stop it, or give this one a socket of its own (--socket)"));
    }
    // Its former owner may have removed the file between open and lock.
    struct stat ours {
    }, there{};
    if (::fstat(lock.get(), &ours) == 0 && ::stat(lock_path.c_str(), &there) == 0 && ours.st_ino == there.st_ino) {
      const std::string pid = std::to_string(::getpid()) + "\n";
      if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), pid.data(), pid.size(), 0) < 0) {
        return SystemError(errno, Cat("cannot write ", lock_path), "make room on the disk");
      }
      return lock;
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketFile>> SocketFile::Create(const std::string& path, mode_t mode) {
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) ::mkdir(folder.c_str(), 0755);  // one level; what is wrong with it shows below
  auto lock = TakeLock(path);
  if (!lock.ok()) return lock.status();
  std::unique_ptr<SocketFile> file(new SocketFile(path, *std::move(lock)));
  FLAGOS_RETURN_IF_ERROR(file->listen(mode));
  return file;
}

absl::Status SocketFile::listen(mode_t mode) {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return absl::FailedPreconditionError(
        Cat(path_, " is there and is no socket; remove it, or choose another --socket"));
  }
  const std::string temporary = path_ + ".new";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (temporary.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(Cat("the socket path ", path_, " is too long: a unix socket may have ",
                                          sizeof address.sun_path - 1 - 4, " bytes here; choose a shorter one"));
  }
  std::memcpy(address.sun_path, temporary.c_str(), temporary.size());
  socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return SystemError(errno, "cannot create a socket", "raise the limit of open files");
  ::unlink(temporary.c_str());
  // Nobody connects before listen(), so that the mode is right before the first connection whatever the umask is.
  if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return SystemError(errno, Cat("cannot create the socket ", path_), kAdvice);
  }
  if (::chmod(temporary.c_str(), mode) != 0 || ::stat(temporary.c_str(), &status) != 0 ||
      ::listen(socket_.get(), kBacklog) != 0 || ::rename(temporary.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return SystemError(error, Cat("cannot listen on ", path_), kAdvice);
  }
  inode_ = status.st_ino;
  return absl::OkStatus();
}

SocketFile::~SocketFile() {
  struct stat there {};
  if (inode_ != 0 && ::stat(path_.c_str(), &there) == 0 && there.st_ino == inode_) ::unlink(path_.c_str());
  ::unlink(LockPath(path_).c_str());  // still locked: who opens it now finds that out and tries again
}

}  // namespace flagos::daemon
