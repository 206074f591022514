// SPDX-License-Identifier: Apache-2.0
// Storage handles and the addresses that stand for them.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "client/number_pool.h"
#include "proto/wire/types.h"

namespace flagos::client {

// Numbers of the session's live storages, lowest free one first, so that a repeated step writes the same bytes; and
// where each lies. Not thread safe: the session's lock guards it, which keeps the order of reuse that of the records.
class HandleTable {
 public:
  struct Place {
    uint64_t address = 0;  // 0: a storage without bytes
    uint16_t stream = 0;   // slot on which it was made, and on which it is freed
    uint8_t device = 0;
  };

  // 0 when all kMaxHandle are in use.
  uint32_t allocate() {
    const uint32_t handle = numbers_.take();
    if (handle == NumberPool::kNone) return 0;
    if (handle >= places_.size()) places_.resize(size_t{2} * handle);
    return handle;
  }
  // After the record that frees it was written, or where no record ever named it.
  void release(uint32_t handle) {
    places_[handle].address = 0;
    numbers_.give_back(handle);
  }
  uint32_t live() const { return numbers_.in_use(); }

  // REQUIRES a handle in use.
  Place& place(uint32_t handle) { return places_[handle]; }
  // The handle whose storage begins at or nearest before `address`; 0 for none. Slow: it looks at every place.
  uint32_t nearest_before(uint64_t address) const {
    uint32_t nearest = 0;
    for (uint32_t handle = 1; handle < places_.size(); ++handle) {
      const uint64_t at = places_[handle].address;
      if (at != 0 && at <= address && (nearest == 0 || at > places_[nearest].address)) nearest = handle;
    }
    return nearest;
  }

 private:
  NumberPool numbers_{1, kMaxHandle};
  std::vector<Place> places_ = std::vector<Place>(1024);
};

// A DataPtr's context names its storage: generation of the session in the upper half, handle in the lower.
inline void* MakeContext(uint32_t generation, uint32_t handle) {
  return reinterpret_cast<void*>((uint64_t{generation} << 32) | handle);
}
inline uint32_t HandleOfContext(const void* context) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(context));
}
inline uint32_t GenerationOfContext(const void* context) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(context) >> 32);
}
// c10's deleter of every storage that has a handle. Runs in garbage collections, in forked children and while the
// process ends, where it does nothing.
void FreeHandle(void* context) noexcept;

// 0 for a storage without bytes that no call has written to, and for one that PyTorch made of an address (a slice of a
// storage, at::from_blob): see LocateAddress. REQUIRES memory on the device.
inline uint32_t HandleOf(const c10::DataPtr& data) {
  return data.get_deleter() == &FreeHandle ? HandleOfContext(data.get_context()) : 0;
}
inline uint32_t HandleOf(const c10::Storage& storage) { return HandleOf(storage.data_ptr()); }

class Session;

// A handle for a new storage of `bytes` bytes on the device's current stream, placed; no record tells of it yet. Throws
// where there are no more handles or addresses. REQUIRES Session::lock()
uint32_t NewHandle(Session& session, uint64_t bytes, c10::Device device);

// Gives a handle's storage a range of addresses (none where bytes is 0) and notes where it lies: the stream slot that
// makes it, and will free it. Returns the address; throws c10::OutOfMemoryError where there is none, and nothing is
// taken. REQUIRES Session::lock()
uint64_t PlaceHandle(Session& session, uint32_t handle, uint64_t bytes, uint16_t stream, uint8_t device);

// Says that all handles are in use.
[[noreturn]] void ThrowTooManyHandles();

// Gives number and address of a handle back that no record has named, or none that succeeded. REQUIRES Session::lock()
void DropHandle(Session& session, uint32_t handle);

// The DataPtr that owns a placed handle from now on: frees it with a record when destroyed.
c10::DataPtr OwnHandle(const Session& session, uint32_t handle, uint64_t address, uint8_t device);

// Gives a storage whose bytes were resized by a call (out=) an address range of its new length and sets its size; the
// handle stays. Throws c10::Error where the storage is a part of another.
void RebindAddress(c10::StorageImpl& storage, uint64_t bytes);

// The handle of a storage, made now (an ALLOCATE record of no bytes) where it has none: for a call that may grow it.
uint32_t EnsureHandle(c10::StorageImpl& storage);

// The storage in which an address lies, for a tensor that was made of the address alone (at::from_blob, as PyTorch
// makes it to pickle a storage), and how many bytes after its beginning. Nullopt where it is none of ours.
struct Location {
  uint32_t handle;
  uint64_t offset;
};
std::optional<Location> LocateAddress(const void* address);

// The device of the storage whose address range holds `address`; nullopt where it is none of ours.
std::optional<c10::Device> DeviceOfAddress(const void* address);

// The storage is also used by work of `stream`, so far: its memory is not reused before that is done.
void RecordStream(const c10::DataPtr& data, const c10::Stream& stream);

// New storage: an ALLOCATE record on the device's current stream. No record and no session for 0 bytes. Throws
// c10::OutOfMemoryError where the device's figures say so, and waiting for what other streams still use did not help.
c10::DataPtr AllocateOnDevice(uint64_t bytes, c10::Device device);

// c10's allocator of the device; ownership static. allocate() uses the current device.
c10::DeviceAllocator* DeviceAllocator();

}  // namespace flagos::client
