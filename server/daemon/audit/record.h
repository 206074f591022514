// SPDX-License-Identifier: Apache-2.0
// A record of the audit log, and the line that it becomes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace flagos::daemon {

// What the first record of a chain follows.
inline constexpr std::string_view kNoAuditHash = "0000000000000000000000000000000000000000000000000000000000000000";

// A place in the chain: a record's number, counted from 1, and its hash (64 lower case hexadecimal digits).
struct AuditLink {
  uint64_t sequence = 0;
  std::string hash = std::string(kNoAuditHash);
  bool operator==(const AuditLink&) const = default;
};

// Who did it. A pid of 0: not known.
struct AuditActor {
  uid_t uid = 0;
  pid_t pid = 0;
  std::string user = {};  // the name, else the number
};

// Texts may come from anybody and are of any length; a token never belongs into one.
struct AuditRecord {
  std::string operation = {};  // what belongs to one request has one id
  AuditActor actor = {};
  std::string verb = {};                           // "session.kill"; docs/operations.md lists them
  std::string target = {};                         // "s3", "l1"; empty: flagosd
  nlohmann::ordered_json before = {}, after = {};  // null where they do not apply
  std::string reason = {};
  std::string result = {};  // "accepted", "refused: ...", "done", "ended", "lost"
};

// The line, without its end, of the record that follows `last`. Its keys are in this order, without white space:
//   sequence time operation actor verb target before after reason result previous hash
// `previous` is the hash of the record before. `hash` is the SHA-256 of the line without `,"hash":"..."`.
std::string FormatAuditRecord(const AuditRecord& record, const AuditLink& last, int64_t unix_microseconds);

// What the bytes of a line say about the chain. The views are of the line.
struct AuditLineLink {
  uint64_t sequence = 0;
  std::string_view previous;
  std::string_view hash;
  bool intact = false;  // `hash` is that of the line
};
// nullopt: it is no record.
std::optional<AuditLineLink> ReadAuditLink(std::string_view line);

}  // namespace flagos::daemon
