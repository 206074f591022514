// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/audit/log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/audit/head.h"
#include "server/daemon/control/users.h"

namespace flagos::daemon {
namespace {

constexpr const char* kAdvice = "let flagosd's user write its folder, or name another file in [audit]";

int64_t NowMicroseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

std::string CompactTime() {
  const time_t now = ::time(nullptr);
  tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

bool IsFull(const absl::Status& status) { return absl::IsResourceExhausted(status); }

absl::Status FileError(int error, const std::string& what) {
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(Cat(what, ": the disk is full; free space on it"));
  }
  return SystemError(error, what, kAdvice);
}

AuditRecord OwnRecord(const char* verb, const std::string& reason) {
  AuditRecord record;
  record.actor = OwnActor();
  record.verb = verb;
  record.reason = reason;
  record.result = "done";
  return record;
}

}  // namespace

AuditActor OwnActor() { return {.uid = ::geteuid(), .pid = ::getpid(), .user = UserName(::geteuid())}; }

AuditLog::AuditLog(const AuditConfig& config)
    : config_(config), file_(config.file), head_(AuditHeadFile(file_, config.head)), keeper_(file_, head_) {}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const AuditConfig& config) {
  std::unique_ptr<AuditLog> log(new AuditLog(config));
  const absl::Status status = log->prepare();
  if (!status.ok() && !IsFull(status)) return status;
  if (!status.ok()) log->fail(status);
  return log;
}

absl::Status AuditLog::lock(const UniqueFd& fd) const {
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return FileError(errno, Cat("cannot lock the audit log ", file_));
  return absl::AlreadyExistsError(
      Cat("another flagosd writes the audit log ", file_, "; end it, or name another file in [audit]"));
}

absl::StatusOr<AuditChain> AuditLog::verify_tail() const {
  const auto head = ReadAuditHead(head_);
  if (!head.ok()) return head.status();
  std::vector<std::string> files = AuditFiles(file_);
  if (!*head) {
    auto chain = VerifyAudit(files, std::nullopt);
    if (!chain.ok()) return chain;
    if (chain->records == 0) return chain;
    return absl::DataLossError(Cat("its head ", head_, " is missing, and ", chain->records, " records are there"));
  }
  // From the file that has the head's record on: a start must not take longer for each file that is kept.
  size_t from = files.size();
  while (from > 0) {
    --from;
    if (files[from] != file_ && files[from] <= RotatedAuditFile(file_, (*head)->last.sequence)) break;
  }
  if (files.size() > 1) files.erase(files.begin(), files.begin() + static_cast<ptrdiff_t>(from));
  auto chain = VerifyAudit(files, *head, from == 0 ? AuditStart::kOldest : AuditStart::kAnywhere);
  if (!chain.ok()) return chain;
  chain->ends.first = (*head)->first;
  chain->ends.first_previous = (*head)->first_previous;
  return chain;
}

// Opens and locks the file and finds the chain's end.
absl::Status AuditLog::prepare() {
  ::unlink((file_ + ".next").c_str());
  auto fd =
      std::make_shared<UniqueFd>(::open(file_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!*fd) return FileError(errno, Cat("cannot open the audit log ", file_));
  FLAGOS_RETURN_IF_ERROR(lock(*fd));
  const auto chain = verify_tail();
  if (!chain.ok() && !absl::IsDataLoss(chain.status())) return chain.status();
  if (!chain.ok()) return start_anew(chain.status());

  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return FileError(errno, Cat("cannot look at the audit log ", file_));
  size_ = static_cast<uint64_t>(status.st_size) - chain->torn;
  if (chain->torn > 0 && ::ftruncate(fd->get(), static_cast<off_t>(size_)) != 0) {
    return FileError(errno, Cat("cannot cut the torn end of the audit log ", file_));
  }
  fd_ = std::move(fd);
  last_ = chain->ends.last;
  first_ = last_.sequence + 1;
  if (size_ > 0) {
    char begin[64] = {};
    const ssize_t size = ::pread(fd_->get(), begin, sizeof begin - 1, 0);
    unsigned long long first = 0;
    if (size > 0 && std::sscanf(begin, "{\"sequence\":%llu", &first) == 1) first_ = first;
  }
  keeper_.set_first(chain->ends.first, chain->ends.first_previous);
  if (last_.sequence == 0 && !opening_) opening_ = OwnRecord("audit.start", "there was no log");
  if (chain->unconfirmed > 0 || chain->torn > 0) {
    log::Warn("the audit log goes beyond its head: flagosd did not end in order, or somebody added to it",
              {{"file", file_}, {"records", chain->unconfirmed}, {"torn_bytes", chain->torn}});
    opening_ = OwnRecord("audit.continue", "the head did not know the last records");
    opening_->after = {{"unconfirmed_records", chain->unconfirmed}, {"torn_bytes", chain->torn}};
  }
  return write_opening();
}

absl::Status AuditLog::write_opening() {
  if (!opening_) return absl::OkStatus();
  absl::Status status = write(*opening_);
  if (status.ok()) opening_.reset();
  return status;
}

absl::Status AuditLog::start_anew(const absl::Status& broken) {
  const std::string suffix = Cat(".broken-", CompactTime());
  std::vector<std::string> moved = AuditFiles(file_);
  moved.push_back(head_);
  for (const std::string& file : moved) {
    if (::rename(file.c_str(), Cat(file, suffix).c_str()) != 0 && errno != ENOENT) {
      return FileError(errno, Cat("cannot move the broken audit log ", file, " aside"));
    }
  }
  std::string why = Shorten(MessageOf(broken), 512);
  for (char& c : why) c = c == '\n' ? ';' : c;
  log::Error("the audit log does not verify: it was moved aside, and a new chain begins",
             {{"file", file_}, {"moved_to", Cat(file_, suffix)}, {"error", why}});
  auto fd = std::make_shared<UniqueFd>(::open(file_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  if (!*fd) return FileError(errno, Cat("cannot open the audit log ", file_));
  FLAGOS_RETURN_IF_ERROR(lock(*fd));
  fd_ = std::move(fd);
  size_ = 0;
  first_ = 1;
  last_ = {};
  keeper_.set_first(1, std::string(kNoAuditHash));
  opening_ = OwnRecord("audit.start", Cat("the log that was there does not verify: ", why));
  opening_->before = {{"moved_to", Cat(file_, suffix)}};
  return write_opening();
}

void AuditLog::append(const AuditRecord& record) {
  absl::Status status = fd_ == nullptr ? prepare() : write_opening();
  if (status.ok() && lost_ > 0) {
    AuditRecord lost = OwnRecord("audit.lost", "the disk did not take them");
    lost.after = {{"records", lost_}};
    status = write(lost);
    if (status.ok()) {
      log::Warn("audit records are written again", {{"file", file_}, {"lost", std::exchange(lost_, 0)}});
    }
  }
  if (status.ok()) status = write(record);
  if (!status.ok()) fail(status);
}

absl::Status AuditLog::write(const AuditRecord& record) {
  const std::string line = FormatAuditRecord(record, last_, NowMicroseconds()) + "\n";
  if (size_ > 0 && size_ + line.size() > config_.max_size) rotate();
  ssize_t written = -1;
  do {
    written = ::write(fd_->get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  const int error = written < 0 ? errno : ENOSPC;
  if (written != static_cast<ssize_t>(line.size())) {
    // Half a record must not stay: the next one would be part of it.
    if (written > 0 && ::ftruncate(fd_->get(), static_cast<off_t>(size_)) != 0) fd_.reset();
    return FileError(error, Cat("cannot write the audit log ", file_));
  }
  size_ += line.size();
  const auto link = ReadAuditLink(std::string_view(line).substr(0, line.size() - 1));
  last_ = {link->sequence, std::string(link->hash)};
  ++records_;
  keeper_.wrote(fd_, last_);
  return absl::OkStatus();
}

// Where it fails the file just grows on, and the next record tries again.
void AuditLog::rotate() {
  const std::string next = file_ + ".next";
  auto fd = std::make_shared<UniqueFd>(::open(next.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  const std::string old = RotatedAuditFile(file_, first_);
  if (!*fd || ::flock(fd->get(), LOCK_EX | LOCK_NB) != 0 || ::rename(file_.c_str(), old.c_str()) != 0) {
    ::unlink(next.c_str());
    return;
  }
  if (::rename(next.c_str(), file_.c_str()) != 0) {
    ::rename(old.c_str(), file_.c_str());
    ::unlink(next.c_str());
    return;
  }
  fd_ = std::move(fd);
  size_ = 0;
  first_ = last_.sequence + 1;
  keeper_.prune(config_.keep);
}

void AuditLog::fail(const absl::Status& status) {
  ++lost_ever_;
  if (lost_++ == 0) {
    log::Error("audit records are lost, and counted; flagosd goes on", {{"file", file_}, {"error", MessageOf(status)}});
  }
}

}  // namespace flagos::daemon
