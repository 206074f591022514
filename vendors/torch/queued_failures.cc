// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/queued_failures.h"

#include <utility>

namespace flagos::torch_host {

void QueuedFailures::add(std::span<const c10::Storage> results, std::shared_ptr<const Failure> failure) {
  const std::lock_guard lock(mutex_);
  std::erase_if(unfilled_, [](const auto& entry) { return entry.second.storage.expired(); });
  for (const c10::Storage& storage : results) {
    unfilled_.insert_or_assign(storage.unsafeGetStorageImpl(), Unfilled{storage.getWeakStorageImpl(), failure});
  }
  latest_ = std::move(failure);
  count_.fetch_add(1, std::memory_order_release);
}

void QueuedFailures::throw_since(uint64_t noted) const {
  if (count() == noted) return;
  const std::lock_guard lock(mutex_);
  throw PoisonedInput(latest_);
}

void QueuedFailures::check(std::span<const c10::Storage> inputs) const {
  if (count() == 0) return;
  const std::lock_guard lock(mutex_);
  for (const c10::Storage& input : inputs) {
    if (const auto found = unfilled_.find(input.unsafeGetStorageImpl()); found != unfilled_.end()) {
      throw PoisonedInput(found->second.failure);
    }
  }
}

}  // namespace flagos::torch_host
