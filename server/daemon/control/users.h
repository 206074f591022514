// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace flagos::daemon {

// The user's name in /etc/passwd, else the number. Directory services are not asked: they may take seconds, and the
// loop never waits. Loop thread only.
std::string UserName(uid_t uid);

}  // namespace flagos::daemon
