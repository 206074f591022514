// SPDX-License-Identifier: Apache-2.0
#include "client/streams.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "client/device.h"
#include "client/session.h"

namespace flagos::client {
namespace {

constexpr size_t kMaxPool = 32;  // streams of one device and priority
constexpr size_t kPriorities = 2;

struct Pool {
  std::vector<uint16_t> slots;
  size_t next = 0;
};

std::mutex mutex;
std::array<std::array<Pool, kPriorities>, kMaxDevices> pools;  // GUARDED_BY(mutex)
uint16_t next_slot = kMaxDevices;                              // GUARDED_BY(mutex)
// By slot: index of the device whose stream it is, plus one; 0 where there is no such stream. Streams are never
// destroyed, so an entry is written once.
std::array<std::atomic<uint8_t>, kMaxStreams> owners{};

// Slots are shared out evenly where there are many devices.
size_t PoolSize(const Session& session) {
  const size_t each = (kMaxStreams - kMaxDevices) / (session.device_count() * kPriorities);
  return std::min(kMaxPool, each);
}

uint16_t CreateStream(Session& session, c10::DeviceIndex device, int32_t priority) {
  const uint16_t slot = next_slot;
  const std::array<int32_t, 2> payload = {priority, 0};
  session.send(MakeHeader(RecordKind::kCreateStream, 0, slot, static_cast<uint8_t>(device)),
               std::as_bytes(std::span(payload)));
  owners[slot].store(static_cast<uint8_t>(device + 1), std::memory_order_release);
  ++next_slot;
  return slot;
}

}  // namespace

c10::Stream StreamFromPool(c10::DeviceIndex device, int priority) {
  CheckDevice(device);
  Session& session = Session::Get();
  const auto [least, greatest] = StreamPriorityRange();
  const int clamped = std::clamp(priority, greatest, least);
  const std::lock_guard lock(mutex);
  Pool& pool = pools[static_cast<size_t>(device)][static_cast<size_t>(-clamped)];
  if (pool.slots.size() < PoolSize(session)) pool.slots.push_back(CreateStream(session, device, clamped));
  const uint16_t slot = pool.slots[pool.next % pool.slots.size()];
  pool.next = (pool.next + 1) % PoolSize(session);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, device), slot);
}

bool IsPoolStream(c10::StreamId id, c10::DeviceIndex device) {
  return id >= 0 && id < static_cast<c10::StreamId>(kMaxStreams) &&
         owners[static_cast<size_t>(id)].load(std::memory_order_acquire) == device + 1;
}

}  // namespace flagos::client
