// SPDX-License-Identifier: Apache-2.0
// The head of an audit log: where its chain ends, kept in a file of its own. A log that was cut short, or put back to
// an older copy, is a chain in order; only the head tells that there was more of it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/daemon/audit/record.h"

namespace flagos::daemon {

struct AuditHead {
  AuditLink last;
  // The oldest record that is kept, and the hash of the one before it: what rotation removed is no loss.
  uint64_t first = 1;
  std::string first_previous = std::string(kNoAuditHash);
};

// nullopt: there is no such file. DataLoss: it is no head.
absl::StatusOr<std::optional<AuditHead>> ReadAuditHead(const std::string& file);

// Puts the file in place whole, and on the disk, before it returns: it may block.
absl::Status WriteAuditHead(const std::string& file, const AuditHead& head);

}  // namespace flagos::daemon
