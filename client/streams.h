// SPDX-License-Identifier: Apache-2.0
// Streams besides the default ones.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <utility>

namespace flagos::client {

// The range of priorities, least urgent first; a lower number is more urgent.
constexpr std::pair<int, int> StreamPriorityRange() { return {0, -1}; }

// A stream of the device from a pool that is handed out in turn, as PyTorch's own devices do: a program that makes
// streams without end shares them. Attaches.
c10::Stream StreamFromPool(c10::DeviceIndex device, int priority);

// Whether StreamFromPool() has made a stream of this id on the device. One atomic load; for any id. Attaches to
// nothing.
bool IsPoolStream(c10::StreamId id, c10::DeviceIndex device);

}  // namespace flagos::client
