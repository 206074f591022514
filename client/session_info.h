// SPDX-License-Identifier: Apache-2.0
// What torch.flagos and support want to know of a session.
#pragma once

#include <string>

namespace flagos::client {

// JSON object: session, generation, endpoint, vendor, executor_pid, client_torch, executor_torch, calls,
// synchronous_calls, mispredictions, signatures, handles, arena_bytes, arena_in_use, lost. "{}" before the first
// attach.
std::string SessionInfo();

}  // namespace flagos::client
