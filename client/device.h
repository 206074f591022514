// SPDX-License-Identifier: Apache-2.0
// The thread's current device, and on each device its current stream. Nothing here attaches or writes a record.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <array>
#include <cstdint>

#include "proto/wire/types.h"

namespace flagos::client {

struct ThreadState {
  c10::DeviceIndex device = 0;
  std::array<uint16_t, kMaxDevices> stream{};  // stream slot; 0: the device's default stream
};
extern thread_local constinit ThreadState thread_state;

inline c10::DeviceIndex CurrentDevice() { return thread_state.device; }

// Throws where there is no such device, with the reason where there is none at all.
void CheckDevice(int64_t device);
void SetCurrentDevice(c10::DeviceIndex device);
// `device` with its index, the current one where it has none. Throws where there is no such device.
c10::Device ResolveDevice(c10::Device device);

// Slots of default streams are the device's index, so id 0 stands for them; other streams' ids are their slots.
inline uint16_t SlotOfStream(c10::StreamId id, c10::DeviceIndex device) {
  return id == 0 ? static_cast<uint16_t>(device) : static_cast<uint16_t>(id);
}
// The stream's slot; throws where its device has no stream of that id, which Python can make up.
uint16_t SlotOf(const c10::Stream& stream);
// Slot of the thread's current stream on the device, as records name it.
inline uint16_t CurrentStreamSlot(c10::DeviceIndex device) {
  return SlotOfStream(thread_state.stream[static_cast<size_t>(device)], device);
}
inline c10::Stream CurrentStream(c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, device),
                     thread_state.stream[static_cast<size_t>(device)]);
}

}  // namespace flagos::client
