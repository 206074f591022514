// SPDX-License-Identifier: Apache-2.0
// What the executor answers about kernel libraries. Each asks it, and waits for the calls issued so far; nothing here
// is on the way of a call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/session.h"
#include "proto/wire/kernels.h"

namespace flagos::client {

// Whether the session's flagosd and executor know of libraries at all; the others REQUIRE it.
bool HasKernelLibraries(Session& session);

std::vector<KernelLibraryInfo> KernelLibraries(Session& session);
std::vector<KernelFigures> KernelCalls(Session& session);

// The library that runs the calls of a signature, by its hash and its number on the wire; asked once for each. Empty
// where the number is no longer the signature's.
std::string KernelOf(Session& session, uint64_t hash, uint32_t signature);

}  // namespace flagos::client
