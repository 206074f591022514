// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/audit/verify.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 12;  // of a rotated file's number
constexpr const char* kAdvice =
    "what stands before it holds; keep the files as they are, and look for who may write to their folder";

absl::Status Broken(uint64_t record, std::string_view why) {
  return absl::DataLossError(Cat("the audit log is broken at record ", record, "\n", why, "\n", kAdvice));
}

// Follows one record after the other.
class Follower {
 public:
  Follower(const std::optional<AuditHead>& head, AuditStart start) : head_(head), start_(start) {}

  absl::Status follow(std::string_view line, const std::string& where) {
    const auto link = ReadAuditLink(line);
    const uint64_t expected = chain_.records > 0 ? last().sequence + 1 : FirstExpected();
    if (!link) return Broken(expected, Cat(where, ": this is no record of an audit log"));
    if (chain_.records > 0 || expected > 0) FLAGOS_RETURN_IF_ERROR(CheckNumber(link->sequence, expected, where));
    if (!link->intact) return Broken(link->sequence, Cat(where, ": the record was changed: its hash is another"));
    if (const auto previous = PreviousExpected(*link); previous && *previous != link->previous) {
      return Broken(link->sequence, Cat(where, ": the record does not follow the one before it: their hashes differ"));
    }
    if (head_ && link->sequence == head_->last.sequence && link->hash != head_->last.hash) {
      return Broken(link->sequence,
                    Cat(where, ": the head knows another record of this number: the log was rewritten"));
    }
    if (chain_.records++ == 0) {
      chain_.ends.first = link->sequence;
      chain_.ends.first_previous = std::string(link->previous);
    }
    last() = {link->sequence, std::string(link->hash)};
    return absl::OkStatus();
  }

  absl::StatusOr<AuditChain> finish() {
    if (!head_) return chain_;
    const uint64_t known = head_->last.sequence;
    if (last().sequence < known) {
      const uint64_t missing = chain_.records == 0 ? head_->first : last().sequence + 1;
      return Broken(missing, Cat("records ", missing, " to ", known, ", which the head knows, are missing at the end: ",
                                 "the log was cut short or put back to an older copy"));
    }
    chain_.unconfirmed = last().sequence - known;
    return chain_;
  }

  void torn(uint64_t bytes) { chain_.torn = bytes; }

 private:
  AuditLink& last() { return chain_.ends.last; }
  // 0: any.
  uint64_t FirstExpected() const { return head_ && start_ == AuditStart::kOldest ? head_->first : 0; }

  absl::Status CheckNumber(uint64_t found, uint64_t expected, const std::string& where) const {
    // Files that rotation was about to remove.
    if (chain_.records == 0 && found < expected) return absl::OkStatus();
    if (found > expected) {
      return Broken(expected, Cat(where, ": records ", expected, " to ", found - 1, " are missing before this one"));
    }
    if (found < expected) {
      return Broken(expected, Cat(where, ": record ", found, " stands where ", expected, " should"));
    }
    return absl::OkStatus();
  }

  std::optional<std::string_view> PreviousExpected(const AuditLineLink& link) const {
    if (chain_.records > 0) return chain_.ends.last.hash;
    if (link.sequence == 1) return kNoAuditHash;
    if (FirstExpected() == link.sequence) return head_->first_previous;
    return std::nullopt;
  }

  const std::optional<AuditHead>& head_;
  const AuditStart start_;
  AuditChain chain_;
};

}  // namespace

std::string RotatedAuditFile(const std::string& file, uint64_t first_record) {
  std::string number = Cat(first_record);
  number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
  return Cat(file, ".", number);
}

std::string AuditHeadFile(const std::string& file, const std::string& head) {
  return head.empty() ? file + ".head" : head;
}

std::vector<std::string> AuditFiles(const std::string& file) {
  const fs::path path(file);
  const std::string prefix = path.filename().string() + ".";
  std::vector<std::string> files;
  std::error_code error;
  const fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.size() == prefix.size() + kDigits && name.starts_with(prefix) &&
        name.find_first_not_of("0123456789", prefix.size()) == std::string::npos) {
      files.push_back(Cat(file, ".", std::string_view(name).substr(prefix.size())));
    }
  }
  std::sort(files.begin(), files.end());
  if (fs::exists(path, error)) files.push_back(file);
  return files;
}

absl::StatusOr<AuditChain> VerifyAudit(const std::vector<std::string>& files, const std::optional<AuditHead>& head,
                                       AuditStart start) {
  Follower follower(head, start);
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return SystemError(errno, Cat("cannot read the audit log ", file), "ask as root, or as flagosd's user");
    uint64_t number = 0;
    for (std::string line; std::getline(in, line);) {
      if (in.eof() && file == files.back()) {
        follower.torn(line.size());
        break;
      }
      FLAGOS_RETURN_IF_ERROR(follower.follow(line, Cat(file, ":", ++number)));
    }
    if (in.bad()) return SystemError(errno, Cat("cannot read the audit log ", file), "see the kernel's log");
  }
  return follower.finish();
}

}  // namespace flagos::daemon
