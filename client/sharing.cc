// SPDX-License-Identifier: Apache-2.0
#include "client/sharing.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "client/errors.h"
#include "client/handles.h"
#include "client/session.h"
#include "proto/socket/descriptors.h"

namespace flagos::client {
namespace {

// Descriptors and the records that tell of them come in the same order.
std::mutex& Order() {
  static auto& order = *new std::mutex;
  return order;
}

struct Part {
  uint32_t handle = 0;
  uint64_t offset = 0;
};

// The storage that has a handle, in which `storage` lies.
Part Find(const c10::Storage& storage) {
  if (const uint32_t handle = HandleOf(storage)) return {handle, 0};
  const auto location = LocateAddress(storage.data());
  TORCH_CHECK(location, "flagos: a tensor without memory on the device cannot be shared with another process");
  return {location->handle, location->offset};
}

}  // namespace

ExportedStorage ExportStorage(const c10::Storage& storage) {
  Session& session = Session::Get();
  const std::lock_guard order(Order());
  const Part part = Find(storage);
  HandleTable::Place place;
  {
    const std::lock_guard lock(session.lock());
    place = session.handles().place(part.handle);
  }
  uint64_t sequence = 0;
  const auto body =
      session.request(MakeHeader(RecordKind::kExportMemory, part.handle, place.stream, place.device), {}, &sequence);
  ExportedStorage exported;
  TORCH_CHECK(body.size() >= sizeof exported.storage,
              "flagos: the executor's answer about a shared tensor is too short");
  std::memcpy(&exported.storage, body.data(), sizeof exported.storage);
  auto descriptor = TakeDescriptor(session.connection().liveness.get(), sequence);
  if (!descriptor.ok()) Throw(descriptor.error());
  exported.descriptor = std::move(descriptor).value();
  exported.storage.offset += part.offset;
  exported.storage.bytes = storage.nbytes();
  storage.unsafeGetStorageImpl()->set_resizable(false);
  return exported;
}

c10::Storage ImportStorage(int descriptor, const SharedStorage& storage, c10::Device device) {
  Session& session = Session::Get();
  const std::lock_guard order(Order());
  static uint64_t last_ticket = 0;  // GUARDED_BY(order)
  const ImportRequest request{.ticket = ++last_ticket, .storage = storage};
  uint32_t handle = 0;
  HandleTable::Place place;
  {
    const std::lock_guard lock(session.lock());
    handle = NewHandle(session, storage.bytes, device);
    place = session.handles().place(handle);
  }
  try {
    const Error sent = SendDescriptor(session.connection().liveness.get(), request.ticket, descriptor);
    if (!sent.ok()) Throw(sent);
    session.request(MakeHeader(RecordKind::kImportMemory, handle, place.stream, place.device),
                    std::as_bytes(std::span(&request, 1)));
  } catch (...) {
    const std::lock_guard lock(session.lock());
    DropHandle(session, handle);
    throw;
  }
  return c10::Storage(c10::Storage::use_byte_size_t(), storage.bytes,
                      OwnHandle(session, handle, place.address, place.device), DeviceAllocator(), false);
}

}  // namespace flagos::client
