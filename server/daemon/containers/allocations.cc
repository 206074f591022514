// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/containers/allocations.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "server/common/fd.h"
#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdvice = "see [containers] folder";

absl::Status MakeFolder(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return SystemError(errno, Cat("cannot make ", path), kAdvice);
  if (::chmod(path.c_str(), mode) != 0) return SystemError(errno, Cat("cannot open up ", path), kAdvice);
  return absl::OkStatus();
}

}  // namespace

absl::Status GrantEntry(const std::string& folder, uid_t uid) {
  struct {
    posix_acl_xattr_header header;
    std::array<posix_acl_xattr_entry, 5> entries;
  } list{};
  const auto any = static_cast<uint32_t>(ACL_UNDEFINED_ID);
  list.header.a_version = POSIX_ACL_XATTR_VERSION;
  list.entries = {{{ACL_USER_OBJ, ACL_READ | ACL_WRITE | ACL_EXECUTE, any},
                   {ACL_USER, ACL_READ | ACL_EXECUTE, uid},
                   {ACL_GROUP_OBJ, 0, any},
                   {ACL_MASK, ACL_READ | ACL_EXECUTE, any},
                   {ACL_OTHER, 0, any}}};
  if (::setxattr(folder.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0) {
    return SystemError(errno, Cat("cannot let user ", uid, " enter ", folder), kAdvice);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Allocations::create(const std::string& lease, uid_t uid, const std::string& token) {
  const std::string outer = Cat(folder_, "/", lease), inner = path_of(lease), socket = inner + "/flagosd.sock";
  FLAGOS_RETURN_IF_ERROR(MakeFolder(outer, 0700));
  if (uid != ::geteuid()) FLAGOS_RETURN_IF_ERROR(GrantEntry(outer, uid));
  FLAGOS_RETURN_IF_ERROR(MakeFolder(inner, 0755));
  FLAGOS_RETURN_IF_ERROR(ReplaceFile(inner + "/token", token + "\n", 0444, kAdvice));
  // Anew: the socket itself may have been made anew.
  ::unlink(socket.c_str());
  if (::link(SocketOf(folder_).c_str(), socket.c_str()) != 0) {
    return SystemError(errno, Cat("cannot link the socket of containers to ", socket), kAdvice);
  }
  return inner;
}

void Allocations::remove(const std::string& lease) {
  std::error_code error;
  fs::remove_all(Cat(folder_, "/", lease), error);
  if (error) log::Warn("the folder of a lease is not removed", {{"lease", lease}, {"error", error.message()}});
}

void Allocations::keep_only(const std::set<std::string>& leases) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(error) && !leases.contains(name)) remove(name);
  }
}

}  // namespace flagos::daemon
