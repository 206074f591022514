// SPDX-License-Identifier: Apache-2.0
#include "client/late_frees.h"

#include <algorithm>

#include "client/session.h"

namespace flagos::client {

void LateFrees::note(uint32_t handle, uint16_t stream, uint8_t device) {
  std::vector<Use>& uses = noted_[handle];
  const Use use{stream, device};
  if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
}

bool LateFrees::defer_noted(Session& session, uint32_t handle) noexcept {
  const auto found = noted_.find(handle);
  if (found == noted_.end()) return false;
  Waiting waiting{handle, {}};
  for (const auto [stream, device] : found->second) {
    waiting.until.emplace_back(stream, session.fence(stream, device));
  }
  noted_.erase(found);
  waiting_.push_back(std::move(waiting));
  return true;
}

bool LateFrees::done(Session& session, const Waiting& waiting) {
  return std::all_of(waiting.until.begin(), waiting.until.end(),
                     [&](const auto& use) { return session.replies().is_complete(use.first, use.second); });
}

void LateFrees::collect(Session& session) noexcept {
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (!done(session, waiting)) return false;
    session.free_handle(waiting.handle);
    return true;
  });
}

void LateFrees::collect_oldest(Session& session) noexcept {
  while (!waiting_.empty() && done(session, waiting_.front())) {
    session.free_handle(waiting_.front().handle);
    waiting_.pop_front();
  }
}

std::vector<std::pair<uint16_t, uint64_t>> LateFrees::pending() const {
  std::vector<std::pair<uint16_t, uint64_t>> uses;
  for (const Waiting& waiting : waiting_) uses.insert(uses.end(), waiting.until.begin(), waiting.until.end());
  return uses;
}

}  // namespace flagos::client
