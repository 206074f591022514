// SPDX-License-Identifier: Apache-2.0
// Storages that several processes' sessions use: descriptors of their memory, which stays the device's own. What one
// session writes the others read; as on other devices, whoever reads waits for whoever writes by itself.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include "proto/shm/memfd.h"
#include "proto/wire/records.h"

namespace flagos::client {

struct ExportedStorage {
  UniqueFd descriptor;
  SharedStorage storage{};
};

// A descriptor of a storage's memory, in which all that this process has asked for so far is done. It cannot be resized
// afterwards. Throws c10::Error where the vendor cannot share memory. REQUIRES a storage of the device with bytes.
// Thread safe, as the next one.
ExportedStorage ExportStorage(const c10::Storage& storage);

// A storage over memory that ExportStorage() gave to another process of this machine; `descriptor` is borrowed. Throws
// c10::Error, of what the executor finds wrong with it too.
c10::Storage ImportStorage(int descriptor, const SharedStorage& storage, c10::Device device);

}  // namespace flagos::client
