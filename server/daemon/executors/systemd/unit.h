// SPDX-License-Identifier: Apache-2.0
// What an executor's unit is made of.
#pragma once

#include <string>

#include "server/daemon/executors/executor_pipes.h"
#include "server/daemon/executors/spec.h"
#include "server/daemon/executors/systemd/bus.h"

namespace flagos::daemon {

inline constexpr const char* kSessionsSlice = "flagos-sessions.slice";

// Fills in a call of StartTransientUnit: a user of its own (DynamicUser), no network, no device but those of `spec`,
// nothing of the file system to write but /tmp, and of flagosd's folders the socket for executors alone.
absl::Status DescribeUnit(sd_bus_message* call, const std::string& unit, const ExecutorSpec& spec,
                          const ExecutorPipes& pipes);

}  // namespace flagos::daemon
