// SPDX-License-Identifier: Apache-2.0
// Random generators that remember their seed and draw nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "proto/wire/error.h"

namespace flagos::null {

// For the dispatch thread alone. The state's bytes are a u64 seed and a u64 offset, as those of a counter-based
// generator.
class Generators {
 public:
  // The devices' default generators exist from the start.
  explicit Generators(uint32_t device_count);

  Error create(uint32_t generator);
  void destroy(uint32_t generator) { states_.erase(generator); }
  Error seed(uint32_t generator, uint64_t seed);
  Result<std::vector<std::byte>> state(uint32_t generator) const;
  Error set_state(uint32_t generator, std::span<const std::byte> bytes);

 private:
  struct State {
    uint64_t seed = 0;
    uint64_t offset = 0;
  };
  static Error Unknown(uint32_t generator);

  std::map<uint32_t, State> states_;
};

}  // namespace flagos::null
