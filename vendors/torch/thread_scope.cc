// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/thread_scope.h"

namespace flagos::torch_host {

ThreadScope& ThreadScope::Enter() {
  thread_local ThreadScope scope;
  return scope;
}

}  // namespace flagos::torch_host
