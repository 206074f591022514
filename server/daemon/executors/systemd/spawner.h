// SPDX-License-Identifier: Apache-2.0
// Executors as transient units of systemd: each has a cgroup of its own, and nothing that happens to flagosd's unit
// touches it.
#pragma once

#include <memory>

#include "server/daemon/executors/handle.h"

namespace flagos::daemon {

// Starts flagos-executor-NUMBER-ID.service in flagos-sessions.slice, over the system bus. Where there is no bus, or it
// refuses, starts fail with what it said. docs/decisions/0019-executors-as-units.md has the reasons.
std::unique_ptr<Spawner> MakeSystemdSpawner(EventLoop& loop);

}  // namespace flagos::daemon
