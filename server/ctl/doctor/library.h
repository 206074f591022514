// SPDX-License-Identifier: Apache-2.0
// Whether the loader finds a library and can load it.
#pragma once

#include <absl/status/status.h>

#include <string>

namespace flagos::ctl {

// Loads it in a child process and forgets it there: the loader alone knows where it looks (caches, LD_LIBRARY_PATH),
// and a broken library may crash or hang whoever loads it. kNotFound with the loader's reason, kAborted where the child
// crashed, kDeadlineExceeded where it did not come to an end. REQUIRES that this process has one thread.
absl::Status TryLoad(const std::string& library);

}  // namespace flagos::ctl
