// SPDX-License-Identifier: Apache-2.0
// Handles of a call's results on their way to being tensors.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <mutex>
#include <span>

#include "client/device.h"
#include "client/handles.h"
#include "client/session.h"

namespace flagos::client {

// A storage that a call makes.
struct StorageSpec {
  uint64_t bytes;
  uint8_t device;
};

// Owns handles and their addresses from their allocation until each is taken by a storage. What is left when this ends
// goes back: silently where no record named it, else with the record that frees it.
class ResultHandles {
 public:
  explicit ResultHandles(Session& session) : session_(session) {}
  ~ResultHandles() {
    if (taken_ != held_.size()) [[unlikely]]
      give_back(taken_);
  }
  ResultHandles(const ResultHandles&) = delete;
  ResultHandles& operator=(const ResultHandles&) = delete;

  // Adds `count` handles, not placed yet. REQUIRES Session::lock()
  void allocate(size_t count) {
    if (session_.late_frees().any()) [[unlikely]]
      session_.late_frees().collect_oldest(session_);
    for (; count != 0; --count) {
      const uint32_t handle = session_.handles().allocate();
      if (handle == 0) [[unlikely]]
        ThrowTooManyHandles();
      held_.push_back({handle, 0});
    }
  }
  // Gives each handle its address, for a call on this stream of this device. REQUIRES as many storages as handles, and
  // Session::lock()
  void place(std::span<const StorageSpec> storages, uint16_t stream, uint8_t device) {
    for (size_t i = 0; i < storages.size(); ++i) {
      const auto [bytes, on] = storages[i];
      const uint16_t slot = on == device ? stream : CurrentStreamSlot(static_cast<c10::DeviceIndex>(on));
      held_[i].address = PlaceHandle(session_, held_[i].handle, bytes, slot, on);
    }
  }
  // A record that binds the handles was written by the stream; from now on giving one back takes a record too.
  void bind(uint16_t stream, uint8_t device) {
    bound_ = true;
    stream_ = stream;
    device_ = device;
  }
  // The executor has said that it bound none.
  void unbind() { bound_ = false; }
  // The executor has said that it bound only the first `count`.
  void shrink(size_t count) {
    bound_ = false;
    give_back(count);
    bound_ = true;
    held_.resize(count);
  }
  // The next storage's data. REQUIRES that it was placed, with this device.
  c10::DataPtr take(uint8_t device) {
    const Held& held = held_[taken_++];
    return OwnHandle(session_, held.handle, held.address, device);
  }
  size_t size() const { return held_.size(); }
  uint32_t operator[](size_t index) const { return held_[index].handle; }

 private:
  struct Held {
    uint32_t handle;
    uint64_t address;  // 0: not placed, or a storage without bytes
  };

  [[gnu::noinline]] void give_back(size_t from) {
    const std::lock_guard lock(session_.lock());
    for (size_t i = from; i < held_.size(); ++i) {
      const auto [handle, address] = held_[i];
      session_.handles().place(handle) = {address, stream_, device_};
      if (bound_) {
        session_.free_handle(handle);
      } else {
        DropHandle(session_, handle);
      }
    }
  }

  Session& session_;
  c10::SmallVector<Held, 4> held_;
  size_t taken_ = 0;
  bool bound_ = false;
  uint16_t stream_ = 0;
  uint8_t device_ = 0;
};

}  // namespace flagos::client
