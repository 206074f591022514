// SPDX-License-Identifier: Apache-2.0
// What a process does once to have a session, and what fork and exit do to it.
#pragma once

namespace flagos::client {

// FLAGOS_LAUNCH_BLOCKING=1: every call waits, so that an error names the line that caused it.
bool LaunchBlocking();

}  // namespace flagos::client
