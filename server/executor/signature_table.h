// SPDX-License-Identifier: Apache-2.0
// What the executor has to know of each live signature to check a call of it.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/wire/signature.h"

namespace flagos::executor {

struct CallShape {
  uint32_t free_bytes = 0;
  uint32_t operator_place = 0;  // Breadcrumb's
  uint16_t inputs = 0;
  uint16_t min_outputs = 0;
  uint16_t max_outputs = 0;
  bool defined = false;
};

// For the dispatch thread alone.
class SignatureTable {
 public:
  // nullptr where `signature` is not defined.
  const CallShape* find(uint32_t signature) const {
    return signature < shapes_.size() && shapes_[signature].defined ? &shapes_[signature] : nullptr;
  }
  // REQUIRES signature < kMaxSignatures.
  void define(uint32_t signature, const Signature& definition, uint32_t operator_place);
  void drop(uint32_t signature);

 private:
  std::vector<CallShape> shapes_;
};

// What is wrong with a decoded signature in a session of `device_count` devices, or nullptr: devices that are not
// there, numbers out of bounds.
const char* CheckSignature(const Signature& signature, uint32_t device_count);

}  // namespace flagos::executor
