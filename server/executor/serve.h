// SPDX-License-Identifier: Apache-2.0
// The life of an executor process.
#pragma once

#include "server/executor/arguments.h"

namespace flagos::executor {

// Starts the vendor, tells flagosd, waits for a session, serves it and ends the process with it. Returns the exit code
// where there was no session: 0 when it was not needed any more, 1 when something failed, which flagosd was told.
int Serve(const Arguments& arguments);

}  // namespace flagos::executor
