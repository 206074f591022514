// SPDX-License-Identifier: Apache-2.0
// A storage's memory on its way to another session.
#pragma once

#include "proto/shm/memfd.h"
#include "proto/wire/records.h"

namespace flagos::vendor {

// A descriptor that names memory, and where in it the storage lies. Who holds the descriptor may map the memory,
// whichever process made it; the memory lives as long as anybody holds or maps it.
struct SharedMemory {
  UniqueFd descriptor;
  SharedStorage storage{};
};

}  // namespace flagos::vendor
