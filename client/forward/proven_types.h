// SPDX-License-Identifier: Apache-2.0
// Combinations of data types that an operator has been seen to take. Which types a kernel implements is not in
// PyTorch's shape functions, so a call is predicted only after one of its types was answered: a wrong type is raised at
// the call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace flagos::client {

// A set of keys (types_key.h). Thread safe, without locks. Combinations beyond its size are asked of the executor for
// each new signature.
class ProvenTypes {
 public:
  bool contains(uint64_t key) const {
    for (const auto& slot : slots_) {
      const uint64_t seen = slot.load(std::memory_order_relaxed);
      if (seen == key) return true;
      if (seen == 0) return false;
    }
    return false;
  }
  // REQUIRES a key that is not 0.
  void add(uint64_t key) {
    for (auto& slot : slots_) {
      uint64_t seen = 0;
      if (slot.compare_exchange_strong(seen, key, std::memory_order_relaxed) || seen == key) return;
    }
  }

 private:
  std::array<std::atomic<uint64_t>, 32> slots_{};
};

}  // namespace flagos::client
