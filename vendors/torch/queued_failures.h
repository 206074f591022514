// SPDX-License-Identifier: Apache-2.0
// Failures of queued calls, for the queued calls behind them. The dispatch thread learns of a failure later, when a
// call that reads the result, or one that waits for everything, may have been queued already.
#pragma once

#include <c10/core/Storage.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "vendors/torch/failures.h"

namespace flagos::torch_host {

// Thread safe. Costs a load while nothing has failed.
class QueuedFailures {
 public:
  // A call failed, which should have filled `results`.
  void add(std::span<const c10::Storage> results, std::shared_ptr<const Failure> failure);

  // Failures so far: a synchronous call notes it when it is queued.
  uint64_t count() const { return count_.load(std::memory_order_acquire); }
  // Throws the latest failure where there were more than `noted`.
  void throw_since(uint64_t noted) const;
  // Throws PoisonedInput where one of `inputs` was never filled.
  void check(std::span<const c10::Storage> inputs) const;

 private:
  struct Unfilled {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the address from meaning another storage
    std::shared_ptr<const Failure> failure;
  };

  std::atomic<uint64_t> count_{0};
  mutable std::mutex mutex_;
  std::unordered_map<const c10::StorageImpl*, Unfilled> unfilled_;  // GUARDED_BY(mutex_)
  std::shared_ptr<const Failure> latest_;                           // GUARDED_BY(mutex_)
};

}  // namespace flagos::torch_host
