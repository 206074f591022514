// SPDX-License-Identifier: Apache-2.0
#include "client/forward/types_key.h"

#include <ATen/core/Tensor.h>

namespace flagos::client {
namespace {

class Key {
 public:
  // FNV-1a, a word at a time.
  void mix(uint64_t value) { key_ = (key_ ^ value) * 0x100000001b3; }
  void tensor(const c10::IValue& value) {
    const bool defined = value.isTensor() && value.toTensor().defined();
    mix(defined ? 1 + static_cast<uint64_t>(value.toTensor().scalar_type()) : 0);
  }
  void number(const c10::IValue& value) {
    mix(256 + (value.isInt() ? 0 : value.isDouble() ? 1 : value.isBool() ? 2 : 3));
  }
  uint64_t value() const { return key_ == 0 ? 1 : key_; }

 private:
  uint64_t key_ = 0xcbf29ce484222325;
};

}  // namespace

uint64_t TypesKey(const Operator& op, std::span<const c10::IValue> arguments) {
  Key key;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    if (value.isNone()) {
      key.mix(128);
      continue;
    }
    switch (op.arguments[i].kind) {
      case ArgumentKind::kTensor: key.tensor(value); break;
      case ArgumentKind::kTensorList:
      case ArgumentKind::kOptionalTensorList:
        for (const c10::IValue& item : value.toListRef()) key.tensor(item);
        key.mix(64);
        break;
      case ArgumentKind::kScalarList:
        for (const c10::IValue& item : value.toListRef()) key.number(item);
        key.mix(65);
        break;
      case ArgumentKind::kScalar:
      case ArgumentKind::kFixedScalar: key.number(value); break;
      case ArgumentKind::kDType: key.mix(512 + static_cast<uint64_t>(value.toInt())); break;
      case ArgumentKind::kString:
        for (const char letter : value.toStringRef()) key.mix(static_cast<uint8_t>(letter));
        key.mix(66);
        break;
      default: key.mix(128); break;
    }
  }
  return key.value();
}

}  // namespace flagos::client
