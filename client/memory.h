// SPDX-License-Identifier: Apache-2.0
// Memory figures, host memory that the executor can read, and resizing.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <utility>

#include "proto/wire/records.h"

namespace flagos::client {

// Figures of the device as of everything issued before; zeros before the first attach.
MemoryStats DeviceMemoryStats(c10::DeviceIndex device);
// Free and total bytes as the session may use them: of its quota where it has one, else of the device. Attaches.
std::pair<size_t, size_t> MemoryInfo(c10::DeviceIndex device);
// From now on peaks count from what is live now.
void ResetPeakMemoryStats(c10::DeviceIndex device);
// Gives memory that the executor caches for later back to the device, on every device of the session.
void EmptyCache();

// What PyTorch calls pinned memory: blocks of the arena, which copies read and write in place.
c10::Allocator* PinnedAllocator();
bool IsPinned(const void* address);

// storage.resize_(): new memory with what fits of the old bytes.
void ResizeStorage(const c10::Storage& storage, size_t bytes);

}  // namespace flagos::client
