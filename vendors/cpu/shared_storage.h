// SPDX-License-Identifier: Apache-2.0
// Storages that other sessions may map: each in a sealed memfd of its own, so that who gets its descriptor sees nothing
// else of the device. On either side it counts as memory of the device that it is used on.
#pragma once

#include <c10/core/Storage.h>

#include "proto/wire/error.h"
#include "vendors/cpu/allocator.h"
#include "vendors/interface/shared_memory.h"

namespace flagos::cpu {

// Moves the storage's bytes into a memfd, unless they are in one already, and gives a descriptor of it. The storage
// stays the same to all who hold it, but for its address, and cannot be resized any more. Throws c10::OutOfMemoryError
// where the device has no room for both copies at once. REQUIRES that nothing uses the storage, and that it has bytes.
Result<vendor::SharedMemory> Share(c10::StorageImpl& storage, uint8_t device, Allocator& allocator);

// A storage over memory that another session shared: what either writes, the other reads. kMalformed where the
// descriptor is no sealed memfd that holds the storage. Throws c10::OutOfMemoryError as above.
Result<c10::Storage> Adopt(vendor::SharedMemory memory, uint8_t device, Allocator& allocator);

}  // namespace flagos::cpu
