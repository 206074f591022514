// SPDX-License-Identifier: Apache-2.0
// The way of an operator call to the executor and of its results back.
#pragma once

#include <ATen/core/stack.h>

#include "client/forward/operator.h"

namespace flagos::client {

struct CallOptions {
  bool synchronous = false;  // wait, whatever is known of the call
  bool notify = false;       // the stream's completion word grows to this call's sequence
};

// Where a call stands in the session's order.
struct CallPlace {
  uint16_t stream;
  uint8_t device;
  uint64_t sequence;
};

// Runs the operator with the arguments on top of the stack and puts its results in their place. Returns at once where
// the geometry of the results is known or can be predicted, else when the executor has answered.
CallPlace Call(Operator& op, torch::jit::Stack& stack, CallOptions options = {});

}  // namespace flagos::client
