// SPDX-License-Identifier: Apache-2.0
#include "client/handles.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <span>
#include <utility>

#include "client/device.h"
#include "client/errors.h"
#include "client/late_frees.h"
#include "client/session.h"

namespace flagos::client {
namespace {

[[noreturn]] void ThrowTooLarge(uint64_t bytes, uint64_t most, uint8_t device) {
  Throw(MakeError(ErrorCode::kOutOfMemory, "flagos out of memory. Tried to allocate " + std::to_string(bytes) +
                                               " bytes on flagos:" + std::to_string(device) +
                                               ", but one storage can have " + std::to_string(most) +
                                               " bytes at most, or all address ranges of this length are in use"));
}

// An address range for `bytes`; 0 where that is 0. REQUIRES session.lock()
uint64_t TakeAddress(Session& session, uint64_t bytes, uint8_t device) {
  if (bytes == 0) return 0;
  const uint64_t address = session.addresses().take(bytes, device);
  if (address == 0) ThrowTooLarge(bytes, session.addresses().max_bytes(), device);
  return address;
}

RecordHeader AllocateHeader(uint32_t handle, const HandleTable::Place& place) {
  return MakeHeader(RecordKind::kAllocate, handle, place.stream, place.device);
}

// A new handle and the record that makes its storage. REQUIRES session.lock()
c10::DataPtr SendAllocate(Session& session, uint64_t bytes, c10::Device device) {
  const uint32_t handle = NewHandle(session, bytes, device);
  const HandleTable::Place place = session.handles().place(handle);
  session.put(AllocateHeader(handle, place), std::as_bytes(std::span(&bytes, 1)));
  return OwnHandle(session, handle, place.address, place.device);
}

// A part of the device's memory this large is waited for: the figures lag behind what is on its way.
constexpr uint64_t kLargePart = 32;

// Whether the device may not have the memory, so that the answer is worth waiting for.
bool IsDoubtful(const Session& session, uint64_t bytes, c10::Device device) {
  if (session.launch_blocking()) return true;
  const DeviceFigures& figures = session.page().devices[static_cast<size_t>(device.index())];
  const int64_t total = figures.total_bytes.load(std::memory_order_relaxed);
  const int64_t allocated = figures.allocated_bytes.load(std::memory_order_relaxed);
  return total > 0 && (bytes > static_cast<uint64_t>(std::max<int64_t>(total - allocated, 0)) ||
                       bytes > static_cast<uint64_t>(total) / kLargePart);
}

// Allocates and waits, so that the error, if any, is raised at this call.
c10::DataPtr AllocateAndWait(Session& session, uint64_t bytes, c10::Device device) {
  uint32_t handle = 0;
  HandleTable::Place place;
  {
    const std::lock_guard lock(session.lock());
    handle = NewHandle(session, bytes, device);
    place = session.handles().place(handle);
  }
  try {
    session.request(AllocateHeader(handle, place), std::as_bytes(std::span(&bytes, 1)));
  } catch (...) {
    const std::lock_guard lock(session.lock());
    DropHandle(session, handle);
    throw;
  }
  return OwnHandle(session, handle, place.address, place.device);
}

// Frees what waits for other streams, which may take them long. False where nothing does.
bool WaitForLateFrees(Session& session) {
  std::vector<std::pair<uint16_t, uint64_t>> uses;
  {
    const std::lock_guard lock(session.lock());
    uses = session.late_frees().pending();
  }
  for (const auto& [stream, sequence] : uses) {
    if (!session.replies().wait_complete(stream, sequence)) session.throw_lost();
  }
  const std::lock_guard lock(session.lock());
  session.late_frees().collect(session);
  return !uses.empty();
}

}  // namespace

void FreeHandle(void* context) noexcept {
  const uint32_t handle = HandleOfContext(context);
  Session* const session = Session::Current();
  if (handle == 0 || session == nullptr || GenerationOfContext(context) != session->generation()) return;
  const std::lock_guard lock(session->lock());
  if (session->late_frees().defer(*session, handle)) return;
  session->free_handle(handle);
}

void ThrowTooManyHandles() {
  Throw(MakeError(ErrorCode::kOutOfRange,
                  "flagos: " + std::to_string(kMaxHandle) +
                      " tensors' storages are alive in this process, more than a session can name; free some, or keep "
                      "many small tensors in one large one"));
}

uint32_t NewHandle(Session& session, uint64_t bytes, c10::Device device) {
  const uint32_t handle = session.handles().allocate();
  if (handle == 0) ThrowTooManyHandles();
  try {
    PlaceHandle(session, handle, bytes, CurrentStreamSlot(device.index()), static_cast<uint8_t>(device.index()));
  } catch (...) {
    session.handles().release(handle);
    throw;
  }
  return handle;
}

uint64_t PlaceHandle(Session& session, uint32_t handle, uint64_t bytes, uint16_t stream, uint8_t device) {
  const uint64_t address = TakeAddress(session, bytes, device);
  session.handles().place(handle) = {address, stream, device};
  return address;
}

void DropHandle(Session& session, uint32_t handle) {
  session.addresses().give_back(session.handles().place(handle).address);
  session.handles().release(handle);
}

c10::DataPtr OwnHandle(const Session& session, uint32_t handle, uint64_t address, uint8_t device) {
  return {reinterpret_cast<void*>(address), MakeContext(session.generation(), handle), &FreeHandle,
          c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(device))};
}

c10::DataPtr AllocateOnDevice(uint64_t bytes, c10::Device device) {
  if (bytes == 0) return {nullptr, nullptr, &FreeHandle, device};
  Session& session = Session::Get();
  {
    const std::lock_guard lock(session.lock());
    if (session.late_frees().any()) session.late_frees().collect(session);
    if (!IsDoubtful(session, bytes, device)) return SendAllocate(session, bytes, device);
  }
  try {
    return AllocateAndWait(session, bytes, device);
  } catch (const c10::OutOfMemoryError&) {
    if (!WaitForLateFrees(session)) throw;
  }
  return AllocateAndWait(session, bytes, device);
}

void RebindAddress(c10::StorageImpl& storage, uint64_t bytes) {
  const c10::Device device = storage.device();
  void* const context = storage.data_ptr().get_context();
  const uint32_t handle = HandleOf(storage.data_ptr());
  TORCH_CHECK(handle != 0 && storage.resizable(), "Trying to resize storage that is not resizable");
  Session& session = Session::Get();
  const std::lock_guard lock(session.lock());
  HandleTable::Place& place = session.handles().place(handle);
  const uint64_t address = TakeAddress(session, bytes, place.device);
  session.addresses().give_back(place.address);
  place.address = address;
  storage._mutable_data_ptr_no_checks().release_context();
  storage.set_data_ptr_noswap({reinterpret_cast<void*>(address), context, &FreeHandle, device});
  storage.set_nbytes(bytes);
}

uint32_t EnsureHandle(c10::StorageImpl& storage) {
  if (const uint32_t handle = HandleOf(storage.data_ptr())) return handle;
  Session& session = Session::Get();
  const std::lock_guard lock(session.lock());
  storage.set_data_ptr_noswap(SendAllocate(session, 0, storage.device()));
  return HandleOf(storage.data_ptr());
}

std::optional<Location> LocateAddress(const void* address) {
  Session& session = Session::Get();
  const auto at = reinterpret_cast<uint64_t>(address);
  const std::lock_guard lock(session.lock());
  if (!session.addresses().contains(at) || !session.addresses().device_of(at)) return std::nullopt;
  // Ranges do not overlap and this one is in use: its storage is the last that begins before the address.
  const uint32_t handle = session.handles().nearest_before(at);
  if (handle == 0) return std::nullopt;
  return Location{handle, at - session.handles().place(handle).address};
}

std::optional<c10::Device> DeviceOfAddress(const void* address) {
  Session* const session = Session::Current();
  const auto value = reinterpret_cast<uint64_t>(address);
  if (session == nullptr || !session->addresses().contains(value)) return std::nullopt;
  const std::lock_guard lock(session->lock());
  const auto device = session->addresses().device_of(value);
  if (!device) return std::nullopt;
  return c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(*device));
}

void RecordStream(const c10::DataPtr& data, const c10::Stream& stream) {
  const uint32_t handle = HandleOf(data);
  Session* const session = Session::Current();
  if (handle == 0 || session == nullptr) return;
  const uint16_t slot = SlotOf(stream);
  const std::lock_guard lock(session->lock());
  if (slot == session->handles().place(handle).stream) return;
  session->late_frees().note(handle, slot, static_cast<uint8_t>(stream.device_index()));
}

}  // namespace flagos::client
