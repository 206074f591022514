// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace flagos::daemon {

inline double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace flagos::daemon
