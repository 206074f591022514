// SPDX-License-Identifier: Apache-2.0
// The session's random number generators by their numbers. Numbers below kMaxDevices are the devices' default ones.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "vendors/torch/device_runtime.h"

namespace flagos::torch_host {

// Dispatch thread only.
class Generators {
 public:
  explicit Generators(DeviceRuntime& runtime) : runtime_(runtime) {}

  // Throws Refusal for a number that does not exist.
  const at::Generator& get(uint32_t number);
  const at::Generator& default_of(uint8_t device) { return get(device); }

  // These throw what PyTorch throws (a state of the wrong size, say).
  void create(uint32_t number, uint8_t device);
  void destroy(uint32_t number) { generators_.erase(number); }
  void seed(uint32_t number, uint64_t seed);
  std::vector<std::byte> state(uint32_t number);
  void set_state(uint32_t number, std::span<const std::byte> state);

 private:
  DeviceRuntime& runtime_;
  std::unordered_map<uint32_t, at::Generator> generators_;
};

}  // namespace flagos::torch_host
