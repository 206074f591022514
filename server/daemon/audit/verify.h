// SPDX-License-Identifier: Apache-2.0
// Whether an audit log is what flagosd wrote.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/daemon/audit/head.h"

namespace flagos::daemon {

// The files of a log, the oldest first: those that rotation moved away, FILE.000000000001 (named after their first
// record), and FILE. Those that exist.
std::vector<std::string> AuditFiles(const std::string& file);
std::string RotatedAuditFile(const std::string& file, uint64_t first_record);

// Where the head is kept: as configured, else beside the log.
std::string AuditHeadFile(const std::string& file, const std::string& head);

struct AuditChain {
  uint64_t records = 0;
  AuditHead ends;            // the first and the last record that the files have
  uint64_t unconfirmed = 0;  // records after the head's: flagosd ended before it noted them, or somebody added them
  uint64_t torn = 0;         // bytes of a last line that has no end
};

enum class AuditStart {
  kOldest,    // the files are all that the head knows of
  kAnywhere,  // older ones are not looked at
};

// Checks every record of `files`, which follow one another: its hash, that it follows the one before, that none is
// missing; and, where there is a head, that they reach it and agree with it. DataLoss, in three lines, names the first
// record that is changed, missing or out of place.
absl::StatusOr<AuditChain> VerifyAudit(const std::vector<std::string>& files, const std::optional<AuditHead>& head,
                                       AuditStart start = AuditStart::kOldest);

}  // namespace flagos::daemon
