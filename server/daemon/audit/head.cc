// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/audit/head.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "proto/shm/memfd.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAdvice = "free space on its disk, and let flagosd's user write its folder";

absl::Status WriteWhole(const std::string& file, const std::string& text) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(fd.get()) != 0) {
    return SystemError(errno, Cat("cannot write ", file), kAdvice);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<AuditHead>> ReadAuditHead(const std::string& file) {
  std::ifstream in(file);
  if (!in) {
    if (errno == ENOENT) return std::nullopt;
    return SystemError(errno, Cat("cannot read the audit log's head ", file), "ask as root, or as flagosd's user");
  }
  std::ostringstream text;
  text << in.rdbuf();
  const Json json = Json::parse(text.str(), nullptr, false);
  AuditHead head;
  try {
    head.last.sequence = json.at("sequence").get<uint64_t>();
    head.last.hash = json.at("hash").get<std::string>();
    head.first = json.at("first").get<uint64_t>();
    head.first_previous = json.at("first_previous").get<std::string>();
  } catch (const Json::exception&) {
    return absl::DataLossError(Cat("the audit log's head ", file, " cannot be understood"));
  }
  return head;
}

absl::Status WriteAuditHead(const std::string& file, const AuditHead& head) {
  const Json json = {{"schema", 1},
                     {"sequence", head.last.sequence},
                     {"hash", head.last.hash},
                     {"first", head.first},
                     {"first_previous", head.first_previous}};
  const std::string next = file + ".new";
  FLAGOS_RETURN_IF_ERROR(WriteWhole(next, json.dump() + "\n"));
  if (::rename(next.c_str(), file.c_str()) != 0) return SystemError(errno, Cat("cannot replace ", file), kAdvice);
  const std::string folder = std::filesystem::path(file).parent_path().string();
  const UniqueFd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) (void)::fsync(fd.get());
  return absl::OkStatus();
}

}  // namespace flagos::daemon
