// SPDX-License-Identifier: Apache-2.0
// Reading once an interval, until flagosd is gone.
#pragma once

#include "server/monitor/arguments.h"

namespace flagos::monitor {

// Returns the exit code: 0 where flagosd is gone, 1 after a failure that it was told.
int Serve(const Arguments& arguments);

}  // namespace flagos::monitor
