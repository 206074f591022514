// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/state/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/state/process_identity.h"

namespace flagos::daemon {
namespace {

constexpr const char* kSessionPrefix = "session-";
constexpr const char* kLeasePrefix = "lease-";
constexpr const char* kCounters = "counters";
constexpr const char* kExecutors = "executors";  // folders of sockets
constexpr const char* kContainers = "containers";
constexpr const char* kNew = ".new";
constexpr off_t kMaxFile = 1 << 20;
constexpr const char* kAdvice = "choose another folder ([daemon] state)";

bool WriteAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t written = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) at += static_cast<size_t>(written);
  }
  return true;
}

bool ReadAll(int fd, std::string& bytes) {
  char buffer[4096];
  for (;;) {
    const ssize_t size = ::read(fd, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size == 0;
    bytes.append(buffer, static_cast<size_t>(size));
    if (bytes.size() > kMaxFile) return false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateStore>> StateStore::Open(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return SystemError(errno, Cat("cannot make the state folder ", folder), kAdvice);
  }
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return SystemError(errno, Cat("cannot open the state folder ", folder), kAdvice);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return SystemError(errno, Cat("cannot look at ", folder), kAdvice);
  if (status.st_uid != ::geteuid() || (status.st_mode & 0077) != 0) {
    return absl::FailedPreconditionError(Cat("the state folder ", folder, " is ",
                                             status.st_uid != ::geteuid() ? "another user's" : "open to other users",
                                             "; make it flagosd's alone (chown, chmod 700), or ", kAdvice));
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError(Cat("another flagosd has the state folder ", folder, "; stop it, or ", kAdvice));
  }
  return std::unique_ptr<StateStore>(new StateStore(folder, std::move(fd), BootId()));
}

StateStore::~StateStore() {
  const auto left = names();
  const auto kept = [](const std::string& name) {
    return name != kCounters && name != kExecutors && name != kContainers;
  };
  if (std::any_of(left.begin(), left.end(), kept)) return;
  remove(kCounters);
  ::unlinkat(fd_.get(), kExecutors, AT_REMOVEDIR);
  ::unlinkat(fd_.get(), kContainers, AT_REMOVEDIR);
  ::rmdir(folder_.c_str());  // the service's stays: it is not flagosd's to remove
}

template <class Message>
void StateStore::write(const std::string& name, Message& message) {
  message.set_boot_id(boot_id_);
  const std::string temporary = name + kNew;
  UniqueFd file(::openat(fd_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file && WriteAll(file.get(), message.SerializeAsString()) &&
      ::renameat(fd_.get(), temporary.c_str(), fd_.get(), name.c_str()) == 0) {
    return;
  }
  log::Error("the state cannot be written: another flagosd will not know of it",
             {{"file", Cat(folder_, "/", name)}, {"error", std::strerror(errno)}});
  ::unlinkat(fd_.get(), temporary.c_str(), 0);
}

template <class Message>
bool StateStore::read(const std::string& name, Message& message) {
  const UniqueFd file(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::string bytes;
  return file && ReadAll(file.get(), bytes) && message.ParseFromString(bytes) && message.boot_id() == boot_id_;
}

template <class Message>
std::vector<Message> StateStore::read_all(const char* prefix) {
  std::vector<Message> found;
  for (const std::string& name : names()) {
    if (!name.starts_with(prefix)) continue;
    Message message;
    if (!name.ends_with(kNew) && read(name, message)) {
      found.push_back(std::move(message));
      continue;
    }
    log::Warn("a state file of another boot, or one that cannot be read, is removed", {{"file", name}});
    remove(name);
  }
  return found;
}

std::vector<std::string> StateStore::names() const {
  std::vector<std::string> names;
  const int copy = ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = copy < 0 ? nullptr : ::fdopendir(copy);
  if (folder == nullptr) return names;
  while (const dirent* const entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

void StateStore::remove(const std::string& name) { ::unlinkat(fd_.get(), name.c_str(), 0); }

void StateStore::put(v1::StoredSession session) { write(Cat(kSessionPrefix, session.number()), session); }
void StateStore::put(v1::StoredLease lease) { write(Cat(kLeasePrefix, lease.id()), lease); }
void StateStore::put(v1::StoredCounters counters) { write(kCounters, counters); }
void StateStore::remove_session(uint64_t number) { remove(Cat(kSessionPrefix, number)); }
void StateStore::remove_lease(const std::string& id) { remove(Cat(kLeasePrefix, id)); }

std::vector<v1::StoredSession> StateStore::sessions() { return read_all<v1::StoredSession>(kSessionPrefix); }
std::vector<v1::StoredLease> StateStore::leases() { return read_all<v1::StoredLease>(kLeasePrefix); }

v1::StoredCounters StateStore::counters() {
  v1::StoredCounters counters;
  if (!read(kCounters, counters)) counters.Clear();
  return counters;
}

}  // namespace flagos::daemon
