// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/containers/cdi.h"

#include <unistd.h>

#include <cerrno>

#include <nlohmann/json.hpp>

#include "server/common/fd.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {

std::string CdiSpecification(const std::map<std::string, std::string>& leases) {
  nlohmann::ordered_json specification = {{"cdiVersion", "0.6.0"}, {"kind", "flagos.io/device"}};
  auto& devices = specification["devices"] = nlohmann::ordered_json::array();
  for (const auto& [lease, path] : leases) {
    const nlohmann::ordered_json mount = {{"hostPath", path},
                                          {"containerPath", "/run/flagos"},
                                          {"options", {"ro", "nosuid", "nodev", "noexec", "rbind"}}};
    devices.push_back({{"name", lease}, {"containerEdits", {{"mounts", {mount}}}}});
  }
  return specification.dump(2) + "\n";
}

absl::Status WriteCdi(const std::string& file, const std::map<std::string, std::string>& leases) {
  constexpr const char* kAdvice = "see [containers] cdi";
  if (leases.empty()) {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) return SystemError(errno, Cat("cannot remove ", file), kAdvice);
    return absl::OkStatus();
  }
  return ReplaceFile(file, CdiSpecification(leases), 0644, kAdvice);
}

}  // namespace flagos::daemon
