// SPDX-License-Identifier: Apache-2.0
#include "server/common/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "server/common/status.h"

namespace flagos {
namespace {

absl::Status ChangeFlag(int fd, int get, int set, int flag, bool on) {
  const int flags = ::fcntl(fd, get);
  if (flags < 0 || ::fcntl(fd, set, on ? flags | flag : flags & ~flag) != 0) {
    return SystemError(errno, "cannot change the mode of descriptor " + std::to_string(fd), "pass an open descriptor");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SetNonBlocking(int fd) { return ChangeFlag(fd, F_GETFL, F_SETFL, O_NONBLOCK, true); }

absl::Status SetCloseOnExec(int fd, bool on) { return ChangeFlag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on); }

uint64_t RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

absl::Status ReplaceFile(const std::string& path, std::string_view text, unsigned mode, std::string_view advice) {
  const std::string temporary = path + ".new";
  const UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fchmod(file.get(), mode) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return SystemError(errno, "cannot write " + path, advice);
  }
  return absl::OkStatus();
}

size_t CountOpenFiles() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  size_t count = 0;
  while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.';
  ::closedir(folder);
  return count - 1;  // the folder itself
}

std::string OwnExecutable() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

RecordReader::Status RecordReader::read(int socket) {
  while (filled_ < buffer_.size()) {
    const ssize_t got = ::recv(socket, buffer_.data() + filled_, buffer_.size() - filled_, MSG_DONTWAIT);
    if (got > 0) {
      filled_ += static_cast<size_t>(got);
    } else if (got == 0) {
      return filled_ == 0 ? Status::kClosed : Status::kBroken;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Status::kMore;
    } else if (errno != EINTR) {
      return Status::kBroken;
    }
  }
  return Status::kRecord;
}

void RecordReader::next(size_t size) {
  buffer_.assign(size, std::byte{0});
  filled_ = 0;
}

}  // namespace flagos
