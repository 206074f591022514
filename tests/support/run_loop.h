// SPDX-License-Identifier: Apache-2.0
// An event loop that the test's own thread runs.
#pragma once

#include <chrono>
#include <functional>

#include "server/daemon/event_loop.h"

namespace flagos::testing {

// Runs the loop until `condition`; false after `patience`.
inline bool RunUntil(daemon::EventLoop& loop, const std::function<bool()>& condition,
                     daemon::Clock::duration patience = std::chrono::seconds(20)) {
  const auto deadline = daemon::Clock::now() + patience;
  bool met = false;
  while (!(met = condition()) && daemon::Clock::now() < deadline) {
    const daemon::Watch slice = loop.after(std::chrono::milliseconds(2), [&loop] { loop.stop(); });
    loop.run();
  }
  return met;
}

}  // namespace flagos::testing
