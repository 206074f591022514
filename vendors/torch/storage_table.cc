// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/storage_table.h"

#include <string>

namespace flagos::torch_host {

void StorageTable::refuse(uint32_t handle) const {
  if (handle < entries_.size() && entries_[handle].failure) throw PoisonedInput(entries_[handle].failure);
  throw Refusal(ErrorCode::kMalformed, "storage " + std::to_string(handle) +
                                           " is read but is not live: the client's memory is damaged, or client and "
                                           "executor disagree; restart the job");
}

}  // namespace flagos::torch_host
