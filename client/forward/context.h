// SPDX-License-Identifier: Apache-2.0
// PyTorch's global state that changes what a kernel does, as a number that signatures name.
#pragma once

#include <cstdint>

#include "client/session.h"

namespace flagos::client {

// The number of the state in force; sends the record that defines it where it is new. Takes the session's lock then.
// `all`: read everything; otherwise what only matrix and convolution kernels look at is taken as it was last seen.
uint32_t CurrentContext(Session& session, bool all);

}  // namespace flagos::client
