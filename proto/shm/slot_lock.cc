// SPDX-License-Identifier: Apache-2.0
#include "proto/shm/slot_lock.h"

#include <fcntl.h>
#include <unistd.h>

namespace flagos {
namespace {

bool SetLock(int fd, uint32_t slot, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  return ::fcntl(fd, F_SETLK, &lock) == 0;
}

}  // namespace

bool LockSlot(int fd, uint32_t slot) { return SetLock(fd, slot, F_WRLCK); }

void UnlockSlot(int fd, uint32_t slot) { SetLock(fd, slot, F_UNLCK); }

}  // namespace flagos
