// SPDX-License-Identifier: Apache-2.0
// flagosd's objects as the control plane shows them.
#pragma once

#include "flagos/v1/control.pb.h"
#include "server/daemon/sessions/supervisor.h"

namespace flagos::daemon {

// Loop thread only.
void Show(const Session& session, v1::Session* to);
void Show(const Lease& lease, v1::Lease* to);
void Show(const Supervisor& supervisor, v1::ListDevicesResponse* to);

}  // namespace flagos::daemon
