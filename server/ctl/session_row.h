// SPDX-License-Identifier: Apache-2.0
// A session as a row: the message's fields, its times as RFC 3339, and its age.
#pragma once

#include <absl/time/time.h>

#include "flagos/v1/control.pb.h"
#include "server/ctl/listing.h"

namespace flagos::ctl {

Json SessionRow(const v1::Session& session, absl::Time now);

}  // namespace flagos::ctl
