// SPDX-License-Identifier: Apache-2.0
// What is looked at of the node that flagosd serves, apart from what it means, so that tests can say what there is.
// Each check says nothing where all is well.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/ctl/doctor/check.h"

namespace flagos::ctl {

// Of a file system, for its users without privileges.
struct Room {
  uint64_t free = 0, total = 0;              // bytes
  uint64_t files_free = 0, files_total = 0;  // 0 and 0: it has no such limit
};

struct NodeState {
  std::string root;                                                    // of /sys and /run; "" on a real machine
  std::vector<std::string> folders;                                    // that flagosd writes to
  std::function<std::optional<Room>(const std::string& folder)> room;  // nullopt: there is no such folder
  absl::Time now;
  absl::Time built;  // a time that the clock must be past: this program's
};

void CheckNodeState(const NodeState& node, Checks& checks);

}  // namespace flagos::ctl
