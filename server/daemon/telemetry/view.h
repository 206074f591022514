// SPDX-License-Identifier: Apache-2.0
// Telemetry as the control plane shows it.
#pragma once

#include "flagos/v1/control.pb.h"
#include "proto/wire/attach.h"
#include "server/daemon/telemetry/telemetry.h"

namespace flagos::daemon {

// Sets `telemetry` of the device that the record describes; leaves it out where the vendor cannot be watched.
void Show(const Telemetry& telemetry, const DeviceRecord& record, v1::Device& to);

}  // namespace flagos::daemon
