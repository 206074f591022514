// SPDX-License-Identifier: Apache-2.0
// Columns and units of what flagosctl lists.
#pragma once

#include "server/ctl/listing.h"

namespace flagos::ctl {

const Schema& DeviceSchema();
const Schema& SessionSchema();
const Schema& SessionEventSchema();
const Schema& LeaseSchema();
const Schema& OpenedLeaseSchema();
const Schema& ClosedLeaseSchema();
const Schema& VersionSchema();
const Schema& CheckSchema();
const Schema& ConfigKeySchema();
const Schema& ConfigChangeSchema();
const Schema& ConfigMistakeSchema();
const Schema& RuntimeSchema();
const Schema& RuntimeCheckSchema();
const Schema& AuditRecordSchema();
const Schema& AuditChainSchema();

}  // namespace flagos::ctl
