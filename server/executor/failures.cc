// SPDX-License-Identifier: Apache-2.0
#include "server/executor/failures.h"

#include <utility>

namespace flagos::executor {
namespace {

constexpr size_t kMaxWarnings = 32;

}  // namespace

void Failures::fail(uint64_t sequence, const Error& error, const std::string& operator_name) {
  if (error.ok()) return;
  page_->failures.fetch_add(1, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  const uint64_t kept = pending_.load(std::memory_order_relaxed);
  if (kept != 0 && kept <= sequence) return;
  error_ = error;
  operator_name_ = operator_name;
  page_->deferred_error.store(sequence, std::memory_order_release);
  pending_.store(sequence, std::memory_order_release);
}

std::optional<Error> Failures::take_before(uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  const uint64_t kept = pending_.load(std::memory_order_relaxed);
  if (kept == 0 || kept >= sequence) return std::nullopt;
  const std::string where = operator_name_.empty() ? "record " : operator_name_ + ", record ";
  Error told = MakeError(error_.code, error_.message + "\n(raised by " + where + std::to_string(kept) +
                                          " of the session, which ran asynchronously; set FLAGOS_LAUNCH_BLOCKING=1 to "
                                          "have it raised at its call)");
  clear();
  return told;
}

void Failures::forget(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (error.code == error_.code && error.message == error_.message) clear();
}

void Failures::clear() {
  error_ = Error::Ok();
  pending_.store(0, std::memory_order_release);
  page_->deferred_error.store(0, std::memory_order_release);
}

void Failures::warn(std::vector<Warning> warnings) {
  const std::lock_guard lock(mutex_);
  for (Warning& warning : warnings) {
    if (warnings_.size() < kMaxWarnings) warnings_.push_back(std::move(warning));
  }
  warned_.store(!warnings_.empty(), std::memory_order_release);
}

std::vector<Warning> Failures::take_warnings() {
  if (!warned_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  warned_.store(false, std::memory_order_relaxed);
  return std::exchange(warnings_, {});
}

}  // namespace flagos::executor
