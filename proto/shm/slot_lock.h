// SPDX-License-Identifier: Apache-2.0
// Slots of a shared page that belong to processes. A slot is its holder's by a record lock (fcntl, F_SETLK) on the byte
// of the page's file with the slot's number, which the kernel gives back when the process ends. Locks are a process's:
// closing any descriptor of the file gives all of them back.
#pragma once

#include <cstdint>

namespace flagos {

// Never waits. Granted again to the process that has it.
bool LockSlot(int fd, uint32_t slot);
void UnlockSlot(int fd, uint32_t slot);

}  // namespace flagos
