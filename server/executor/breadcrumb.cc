// SPDX-License-Identifier: Apache-2.0
#include "server/executor/breadcrumb.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace flagos::executor {

uint32_t Breadcrumb::add_name(std::string_view name) {
  if (name.size() + 1 > kOperatorNameBytes - used_) return 0;
  char* const at = page_->operator_names + used_;
  std::memcpy(at, name.data(), name.size());
  at[name.size()] = '\0';
  const auto place = static_cast<uint32_t>(used_ + 1);
  used_ += name.size() + 1;
  return place;
}

std::string Breadcrumb::name_of(uint64_t sequence) const {
  const uint64_t running = page_->running_sequence.load(std::memory_order_relaxed);
  if (sequence > running || running - sequence >= kRecent) return {};
  const uint32_t place = recent_[sequence % kRecent].load(std::memory_order_relaxed);
  // Only this process writes the page, and names never move.
  return place == 0 ? std::string() : std::string(page_->operator_names + place - 1);
}

std::vector<std::string> Breadcrumb::latest_calls(size_t most) const {
  constexpr uint64_t kLookedAt = 64;
  std::vector<std::string> names;
  const uint64_t running = page_->running_sequence.load(std::memory_order_relaxed);
  for (uint64_t back = 0; back < std::min(kLookedAt, running) && names.size() < most; ++back) {
    std::string name = name_of(running - back);
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace flagos::executor
