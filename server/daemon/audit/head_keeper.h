// SPDX-License-Identifier: Apache-2.0
// A thread that puts an audit log on the disk and keeps its head: what may block, and so may not run on the loop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "proto/shm/memfd.h"
#include "server/daemon/audit/verify.h"

namespace flagos::daemon {

class HeadKeeper {
 public:
  HeadKeeper(std::string file, std::string head);
  // After the last record is on the disk and in the head.
  ~HeadKeeper();
  HeadKeeper(const HeadKeeper&) = delete;
  HeadKeeper& operator=(const HeadKeeper&) = delete;

  // `last` was written to `file`, which is open until it is on the disk. Of several the newest counts.
  void wrote(std::shared_ptr<UniqueFd> file, AuditLink last);
  // The log has rotated files: all but the newest `keep` of them are removed. 0: all are kept.
  void prune(uint32_t keep);
  // The oldest record that there is, from the log's own files.
  void set_first(uint64_t first, std::string previous);

  // Heads that could not be written; each is tried again every second. Thread safe.
  uint64_t failures() const { return failures_; }

 private:
  void run();
  bool keep_head(const std::vector<std::shared_ptr<UniqueFd>>& files, const AuditLink& last, uint32_t keep);

  const std::string file_, head_file_;
  std::atomic<uint64_t> failures_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<UniqueFd>> files_;            // GUARDED_BY(mutex_): to be put on the disk
  std::optional<AuditLink> last_;                           // GUARDED_BY(mutex_): to be put into the head
  uint64_t first_ = 1;                                      // GUARDED_BY(mutex_)
  std::string first_previous_ = std::string(kNoAuditHash);  // GUARDED_BY(mutex_)
  uint32_t keep_ = 0;                                       // GUARDED_BY(mutex_)
  bool ends_ = false;                                       // GUARDED_BY(mutex_)
  std::thread thread_;                                      // last: it uses the others
};

}  // namespace flagos::daemon
