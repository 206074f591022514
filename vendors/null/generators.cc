// SPDX-License-Identifier: Apache-2.0
#include "vendors/null/generators.h"

#include <cstring>
#include <string>

namespace flagos::null {
namespace {

constexpr uint64_t kDefaultSeed = 67280421310721;  // what PyTorch's generators start with

}  // namespace

Generators::Generators(uint32_t device_count) {
  for (uint32_t device = 0; device < device_count; ++device) states_[device].seed = kDefaultSeed;
}

Error Generators::Unknown(uint32_t generator) {
  return MakeError(ErrorCode::kNotFound,
                   "random generator " + std::to_string(generator) + " does not exist; create it before it is used");
}

Error Generators::create(uint32_t generator) {
  states_[generator] = State{kDefaultSeed, 0};
  return Error::Ok();
}

Error Generators::seed(uint32_t generator, uint64_t seed) {
  const auto found = states_.find(generator);
  if (found == states_.end()) return Unknown(generator);
  found->second = State{seed, 0};
  return Error::Ok();
}

Result<std::vector<std::byte>> Generators::state(uint32_t generator) const {
  const auto found = states_.find(generator);
  if (found == states_.end()) return Unknown(generator);
  std::vector<std::byte> bytes(sizeof(State));
  std::memcpy(bytes.data(), &found->second, sizeof(State));
  return bytes;
}

Error Generators::set_state(uint32_t generator, std::span<const std::byte> bytes) {
  const auto found = states_.find(generator);
  if (found == states_.end()) return Unknown(generator);
  if (bytes.size() != sizeof(State)) {
    return MakeError(ErrorCode::kRuntime, "a generator's state has " + std::to_string(sizeof(State)) +
                                              " bytes here, not " + std::to_string(bytes.size()) +
                                              "; set one that this device returned");
  }
  std::memcpy(&found->second, bytes.data(), sizeof(State));
  return Error::Ok();
}

}  // namespace flagos::null
