// SPDX-License-Identifier: Apache-2.0
// The configuration as the control plane shows it.
#pragma once

#include <vector>

#include "flagos/v1/control.pb.h"
#include "server/daemon/config/reload.h"

namespace flagos::daemon {

// Loop thread only.
void Show(const ConfigReload& reload, v1::ShowConfigResponse* to);
void Show(const std::vector<ConfigChange>& changes, v1::ReloadConfigResponse* to);

}  // namespace flagos::daemon
