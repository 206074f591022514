// SPDX-License-Identifier: Apache-2.0
#include "server/executor/responder.h"

namespace flagos::executor {

SlotResponder::~SlotResponder() {
  if (!slots_.is_open(slot_, sequence_)) return;
  slots_.answer(
      slot_, sequence_,
      MakeError(ErrorCode::kInternal, "the vendor gave up record " + std::to_string(sequence_) +
                                          " without an answer; this is a bug of the vendor's adaptor: report it "
                                          "with the executor's log"),
      {}, {});
}

}  // namespace flagos::executor
