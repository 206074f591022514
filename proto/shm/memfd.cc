// SPDX-License-Identifier: Apache-2.0
#include "proto/shm/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace flagos {
namespace {

Error SystemError(const std::string& what, const std::string& advice) {
  return MakeError(ErrorCode::kUnavailable, what + ": " + std::strerror(errno) + "; " + advice);
}

// What Boost.Interprocess asks of something that can be mapped.
class MappableFd {
 public:
  MappableFd(int fd, Access access) : fd_(fd), access_(access) {}
  boost::interprocess::mapping_handle_t get_mapping_handle() const {
    return boost::interprocess::ipcdetail::mapping_handle_from_file_handle(fd_);
  }
  boost::interprocess::mode_t get_mode() const {
    return access_ == Access::kReadOnly ? boost::interprocess::read_only : boost::interprocess::read_write;
  }

 private:
  int fd_;
  Access access_;
};

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) reset(other.release());
  return *this;
}

int UniqueFd::release() { return std::exchange(fd_, -1); }

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<UniqueFd> CreateRegion(const char* name, uint64_t bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return SystemError("cannot create shared memory", "raise the limit of open files");
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t size = (bytes + page - 1) / page * page;
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return SystemError("cannot size shared memory to " + std::to_string(size) + " bytes", "configure a smaller region");
  }
  // A memfd is made 0777: whoever got it for reading could open it again for writing, through /proc.
  if (::fchmod(fd.get(), S_IRUSR) != 0) return SystemError("cannot protect shared memory", "report this");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return SystemError("cannot seal shared memory", "a kernel of 3.17 or later is needed");
  }
  return fd;
}

Result<UniqueFd> ReopenReadOnly(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  UniqueFd read_only(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only) {
    const bool many = errno == EMFILE || errno == ENFILE;
    return SystemError("cannot open shared memory for reading",
                       many ? "raise the limit of open files (ulimit -n)" : "mount /proc");
  }
  return read_only;
}

Result<Mapping> Mapping::Map(int fd, Access access, uint64_t min_bytes) {
  struct stat status {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW) ||
      ::fstat(fd, &status) != 0 || static_cast<uint64_t>(status.st_size) < min_bytes || status.st_size == 0) {
    return MakeError(ErrorCode::kMalformed,
                     "a shared region is not a sealed memfd of the agreed size, so the peer "
                     "could truncate it under us; the peer is not a flagosd of this version");
  }
  try {
    boost::interprocess::mapped_region region(MappableFd(fd, access), MappableFd(fd, access).get_mode());
    // A forked child does not share a region with its parent by accident.
    ::madvise(region.get_address(), region.get_size(), MADV_DONTFORK);
    return Mapping(std::move(region));
  } catch (const boost::interprocess::interprocess_exception& error) {
    return MakeError(ErrorCode::kUnavailable, std::string("cannot map a shared region: ") + error.what() +
                                                  "; check the limit of address space (ulimit -v)");
  }
}

void Mapping::inherit() const noexcept { ::madvise(data(), size(), MADV_DOFORK); }

void Mapping::make_private(int fd) const noexcept {
  // Over the inherited mapping, in one step: nobody else can be given the addresses meanwhile.
  if (::mmap(data(), size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED) {
    drop();
  }
}

void Mapping::drop() const noexcept { ::munmap(data(), size()); }

}  // namespace flagos
