// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/audit/head_keeper.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <tuple>
#include <utility>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/audit/head.h"

namespace flagos::daemon {
namespace {

constexpr auto kRetry = std::chrono::seconds(1);

// Of a file's first record.
std::optional<std::pair<uint64_t, std::string>> FirstOf(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  const auto link = ReadAuditLink(line);
  if (!link) return std::nullopt;
  return std::pair(link->sequence, std::string(link->previous));
}

}  // namespace

HeadKeeper::HeadKeeper(std::string file, std::string head)
    : file_(std::move(file)), head_file_(std::move(head)), thread_([this] { run(); }) {}

HeadKeeper::~HeadKeeper() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void HeadKeeper::wrote(std::shared_ptr<UniqueFd> file, AuditLink last) {
  {
    const std::lock_guard lock(mutex_);
    if (files_.empty() || files_.back() != file) files_.push_back(std::move(file));
    last_ = std::move(last);
  }
  changed_.notify_one();
}

void HeadKeeper::prune(uint32_t keep) {
  const std::lock_guard lock(mutex_);
  keep_ = keep;
}

void HeadKeeper::set_first(uint64_t first, std::string previous) {
  const std::lock_guard lock(mutex_);
  first_ = first;
  first_previous_ = std::move(previous);
}

void HeadKeeper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || last_; });
    if (!last_) return;
    const auto files = std::exchange(files_, {});
    const AuditLink last = *std::exchange(last_, std::nullopt);
    const uint32_t keep = std::exchange(keep_, 0);
    lock.unlock();
    const bool kept = keep_head(files, last, keep);
    lock.lock();
    if (kept) continue;
    // What came meanwhile is newer.
    if (!last_) last_ = last;
    files_.insert(files_.begin(), files.begin(), files.end());
    keep_ = std::max(keep_, keep);
    if (ends_) return;
    changed_.wait_for(lock, kRetry, [this] { return ends_; });
  }
}

bool HeadKeeper::keep_head(const std::vector<std::shared_ptr<UniqueFd>>& files, const AuditLink& last, uint32_t keep) {
  absl::Status status;
  for (const auto& file : files) {
    if (::fdatasync(file->get()) != 0) status = SystemError(errno, "the audit log is not on the disk", "see its disk");
  }
  std::vector<std::string> old;
  std::optional<std::pair<uint64_t, std::string>> first;
  if (keep > 0) {
    old = AuditFiles(file_);
    std::erase(old, file_);
    const size_t surplus = old.size() - std::min<size_t>(keep, old.size());
    if (surplus > 0) first = FirstOf(old[surplus]);
    old.resize(surplus);
  }
  AuditHead head{.last = last};
  {
    const std::lock_guard lock(mutex_);
    if (first) std::tie(first_, first_previous_) = *first;
    head.first = first_;
    head.first_previous = first_previous_;
  }
  if (status.ok()) status = WriteAuditHead(head_file_, head);
  if (!status.ok()) {
    if (failures_++ == 0) {
      log::Error("the audit log's head is not kept; it is tried again every second", {{"error", MessageOf(status)}});
    }
    return false;
  }
  // After the head has let go of them: a file that is there and need not be is no gap.
  if (first) {
    for (const std::string& file : old) ::unlink(file.c_str());
  }
  return true;
}

}  // namespace flagos::daemon
