// SPDX-License-Identifier: Apache-2.0
// What a process inherits and how it is seen from outside.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"

namespace flagos::executor {

// Closes every descriptor but the standard ones and `keep`, and keeps that one from children. What flagosd holds for
// other sessions must not live on here.
void CloseInherited(int keep);

// The descriptor elsewhere, where it is one of the three standard ones; /dev/null takes its place there.
UniqueFd MoveFromStandard(int fd);

// A signalfd for SIGTERM, which is blocked from now on, also in threads made later. The terminal's signals, which go to
// the client as well, are ignored: the client decides what becomes of its session.
absl::StatusOr<UniqueFd> TakeSignals();

// Name of the calling thread in ps and top; cut to 15 bytes.
void SetThreadName(const std::string& name);

}  // namespace flagos::executor
