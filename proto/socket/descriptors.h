// SPDX-License-Identifier: Apache-2.0
// Descriptors that belong to command records: they travel beside the ring, over the session's liveness socket, each
// with a ticket that its record names too. Whatever else the socket holds then (an earlier record may have failed
// between the two) is passed over.
#pragma once

#include <cstdint>

#include "proto/shm/memfd.h"
#include "proto/wire/error.h"

namespace flagos {

// Sends a copy of `fd` under `ticket`; never blocks. kUnavailable where the peer has not taken those sent before, or is
// gone.
Error SendDescriptor(int socket, uint64_t ticket, int fd);

// The descriptor that was sent under `ticket`; never blocks: it was sent before the record, or the answer, that tells
// of it. Those under other tickets are closed. kMalformed where there is none, or the peer breaks the rules.
Result<UniqueFd> TakeDescriptor(int socket, uint64_t ticket);

}  // namespace flagos
