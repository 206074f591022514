// SPDX-License-Identifier: Apache-2.0
// Writes the audit log: a chain of records in a file, and its head in another.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/daemon/audit/head_keeper.h"
#include "server/daemon/audit/record.h"
#include "server/daemon/audit/verify.h"
#include "server/daemon/config/config.h"

namespace flagos::daemon {

// A record is one write(2) to the page cache: no more than the log of flagosd costs the loop. A thread (HeadKeeper)
// puts it on the disk and then moves the head, within milliseconds; so kill -9 of flagosd loses no record, and a power
// cut at most the last ones, which the head does not know yet.
//
// A full disk stops nobody: records that it does not take are counted, and the next one that fits is preceded by an
// "audit.lost" with their number.
//
// Loop thread only, but for the counts.
class AuditLog {
 public:
  // Goes on with the chain that is there. Where that does not verify, its files and its head are moved aside
  // (FILE.broken-TIME...), flagosd's log says why, and so does the first record of a new chain. AlreadyExists: another
  // flagosd writes it. A full disk is no error here either. `config` is borrowed.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const AuditConfig& config);
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void append(const AuditRecord& record);

  // Records that were written, and what was not: records, and positions of the head. Thread safe.
  uint64_t records() const { return records_; }
  uint64_t failures() const { return lost_ever_ + keeper_.failures(); }

 private:
  explicit AuditLog(const AuditConfig& config);
  absl::Status prepare();
  absl::Status lock(const UniqueFd& fd) const;
  absl::StatusOr<AuditChain> verify_tail() const;
  absl::Status start_anew(const absl::Status& broken);
  absl::Status write(const AuditRecord& record);
  absl::Status write_opening();
  void rotate();
  void fail(const absl::Status& status);

  const AuditConfig& config_;
  const std::string file_, head_;  // as they were when it was opened
  HeadKeeper keeper_;
  std::shared_ptr<UniqueFd> fd_;  // null: to be opened again before the next record
  uint64_t size_ = 0;             // of the file
  uint64_t first_ = 1;            // the file's first record
  AuditLink last_;
  std::optional<AuditRecord> opening_;  // says why the chain begins, or goes on, here; until it is written
  std::atomic<uint64_t> records_{0}, lost_ever_{0};
  uint64_t lost_ = 0;  // since the last record that was written
};

// The actor where flagosd itself is.
AuditActor OwnActor();

}  // namespace flagos::daemon
