// SPDX-License-Identifier: Apache-2.0
// Collects what kernels warn, to be raised again in the client.
#pragma once

#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "proto/wire/reply.h"

namespace flagos::torch_host {

// The handler of one thread. Kernels' own threads (OpenMP) keep PyTorch's, which prints.
class WarningCollector final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override;

  bool empty() const { return warnings_.empty(); }
  // What was collected since the last time.
  std::vector<Warning> take() { return std::exchange(warnings_, {}); }

 private:
  std::vector<Warning> warnings_;
};

}  // namespace flagos::torch_host
