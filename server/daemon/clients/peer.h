// SPDX-License-Identifier: Apache-2.0
// Who called, over the control plane.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/daemon/sessions/supervisor.h"

namespace flagos::daemon {

// `peer` is what ServerContext::peer() says of a connection that was handed to gRPC as a descriptor: "fd:17". The
// kernel is asked who is at the other end of that descriptor. It is the call's own connection for as long as the call
// lives: a call keeps its transport, and that closes its descriptor only when it is destroyed, so that the number
// cannot belong to another connection meanwhile, even where the peer hung up long ago.
absl::StatusOr<Caller> CallerOf(std::string_view peer);

}  // namespace flagos::daemon
