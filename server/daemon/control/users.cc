// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/control/users.h"

#include <pwd.h>

#include <cstdio>
#include <map>
#include <memory>

namespace flagos::daemon {
namespace {

std::string Lookup(uid_t uid) {
  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  if (const std::unique_ptr<FILE, Close> file{std::fopen("/etc/passwd", "re")}) {
    passwd entry{};
    passwd* found = nullptr;
    char buffer[4096];
    while (::fgetpwent_r(file.get(), &entry, buffer, sizeof buffer, &found) == 0) {
      if (entry.pw_uid == uid) return entry.pw_name;
    }
  }
  return std::to_string(uid);
}

}  // namespace

std::string UserName(uid_t uid) {
  constexpr size_t kMaxNames = 1024;
  static auto* const names = new std::map<uid_t, std::string>;
  if (names->size() > kMaxNames) names->clear();
  const auto found = names->find(uid);
  return found != names->end() ? found->second : names->emplace(uid, Lookup(uid)).first->second;
}

}  // namespace flagos::daemon
