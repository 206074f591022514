// SPDX-License-Identifier: Apache-2.0
// The session's storages by handle. Dispatch thread only: queued calls hold what they use themselves.
#pragma once

#include <c10/core/Storage.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "proto/wire/types.h"
#include "vendors/torch/failures.h"

namespace flagos::torch_host {

class StorageTable {
 public:
  // `none` serves handle 0, the storage without bytes.
  explicit StorageTable(c10::Storage none) { entries_.push_back({std::move(none), nullptr}); }

  // The storage of a live handle; throws PoisonedInput, or Refusal for a handle that is not bound.
  const c10::Storage& get(uint32_t handle) const {
    if (handle < entries_.size() && entries_[handle].storage) [[likely]]
      return entries_[handle].storage;
    refuse(handle);
  }

  // Binds anew whatever the handle was. Handle 0 stays what it is.
  void bind(uint32_t handle, c10::Storage storage) {
    Entry* entry = at(handle);
    if (entry == nullptr) return;
    entry->storage = std::move(storage);
    if (entry->failure) entry->failure.reset();
  }
  void poison(uint32_t handle, std::shared_ptr<const Failure> failure) {
    if (Entry* entry = at(handle)) *entry = {c10::Storage(), std::move(failure)};
  }
  void release(uint32_t handle) {
    if (handle != 0 && handle < entries_.size()) entries_[handle] = {};
  }

  // For what comes late from another thread: only where the handle still means the storage that it meant then.
  bool holds(uint32_t handle, const c10::StorageImpl* storage) const {
    return handle != 0 && handle < entries_.size() && entries_[handle].storage.unsafeGetStorageImpl() == storage;
  }

 private:
  struct Entry {
    c10::Storage storage;                    // null: not bound, or poisoned
    std::shared_ptr<const Failure> failure;  // set: poisoned
  };

  Entry* at(uint32_t handle) {
    if (handle == 0 || handle > kMaxHandle) return nullptr;
    if (handle >= entries_.size()) entries_.resize(std::max<size_t>(handle + 1, entries_.size() * 2));
    return &entries_[handle];
  }
  [[noreturn]] void refuse(uint32_t handle) const;

  std::vector<Entry> entries_;
};

}  // namespace flagos::torch_host
