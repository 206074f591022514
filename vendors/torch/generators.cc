// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/generators.h"

#include <ATen/ATen.h>

#include <cstring>
#include <mutex>
#include <string>

#include "vendors/torch/failures.h"

namespace flagos::torch_host {

const at::Generator& Generators::get(uint32_t number) {
  if (const auto found = generators_.find(number); found != generators_.end()) return found->second;
  if (number < runtime_.device_count()) {
    return generators_.emplace(number, runtime_.default_generator(static_cast<uint8_t>(number))).first->second;
  }
  throw Refusal(ErrorCode::kMalformed, "generator " + std::to_string(number) + " was never created");
}

void Generators::create(uint32_t number, uint8_t device) {
  if (number < kMaxDevices || number >= kMaxGenerators || device >= runtime_.device_count()) {
    throw Refusal(ErrorCode::kMalformed, "generator " + std::to_string(number) + " of device " +
                                             std::to_string(device) + " cannot be created: no such number or device");
  }
  generators_[number] = runtime_.make_generator(device);
}

void Generators::seed(uint32_t number, uint64_t seed) {
  at::Generator generator = get(number);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

std::vector<std::byte> Generators::state(uint32_t number) {
  at::Generator generator = get(number);
  const std::lock_guard lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  const auto* bytes = static_cast<const std::byte*>(state.const_data_ptr());
  return {bytes, bytes + state.nbytes()};
}

void Generators::set_state(uint32_t number, std::span<const std::byte> state) {
  at::Generator generator = get(number);
  const at::Tensor bytes = at::empty({static_cast<int64_t>(state.size())}, at::kByte);
  if (!state.empty()) std::memcpy(bytes.mutable_data_ptr(), state.data(), state.size());
  const std::lock_guard lock(generator.mutex());
  generator.set_state(bytes);
}

}  // namespace flagos::torch_host
