// SPDX-License-Identifier: Apache-2.0
// What a call might return, told from its signature alone.
#pragma once

#include "proto/wire/definitions.h"
#include "proto/wire/signature.h"

namespace flagos::null {

// The client's prediction where there is one. Else for each Tensor a contiguous one of the broadcast sizes of the
// tensor arguments and the first one's dtype, for each list one such for every item of the first list argument, for
// other values zero.
Outcome PlausibleOutcome(const OperatorDefinition& op, const Signature& signature);

}  // namespace flagos::null
