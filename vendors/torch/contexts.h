// SPDX-License-Identifier: Apache-2.0
// PyTorch's global state as the client's calls need it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/wire/records.h"
#include "vendors/torch/device_runtime.h"

namespace flagos::torch_host {

// Dispatch thread only.
class Contexts {
 public:
  explicit Contexts(DeviceRuntime& runtime) : runtime_(runtime) {}

  void define(uint32_t context, const ContextState& state);
  bool defined(uint32_t context) const { return context < states_.size() && states_[context].has_value(); }
  // Makes the context the one in force. The state is the process's, so a change waits for what is queued.
  // REQUIRES defined(context).
  void enter(uint32_t context) {
    if (context != current_) [[unlikely]]
      change(context);
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  void change(uint32_t context);

  DeviceRuntime& runtime_;
  std::vector<std::optional<ContextState>> states_;
  uint32_t current_ = kNone;
};

}  // namespace flagos::torch_host
