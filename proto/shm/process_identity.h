// SPDX-License-Identifier: Apache-2.0
// Naming a process so that it can be asked later whether it still is: its number and when it started, since numbers
// come again.
#pragma once

#include <cstdint>

namespace flagos {

struct ProcessIdentity {
  int64_t pid = 0;
  uint64_t started = 0;  // clock ticks since the machine started, as /proc/PID/stat has it; 0: not known
};

// 0: there is no such process, or the kernel does not say.
uint64_t StartTimeOf(int64_t pid);
ProcessIdentity OwnIdentity();

// Whether all its threads have ended, and the kernel has taken its memory and descriptors back. A process that is
// ending still is there. Where the kernel does not tell, so is this one.
bool ProcessIsGone(const ProcessIdentity& process);

}  // namespace flagos
