// SPDX-License-Identifier: Apache-2.0
// Messages of the control plane as JSON in base units.
#pragma once

#include <google/protobuf/message.h>

#include "server/ctl/listing.h"

namespace flagos::ctl {

// Every field in the order of its number, under its own name: numbers as numbers, enumerations by their name without
// the type's prefix ("RUNNING"), and null for what is absent. A field added to the protocol appears by itself.
Json ToJson(const google::protobuf::Message& message);

}  // namespace flagos::ctl
