// SPDX-License-Identifier: Apache-2.0
#include "server/executor/signature_table.h"

#include <algorithm>
#include <limits>

namespace flagos::executor {
namespace {

constexpr uint8_t kNoIndex = 255;  // a device argument without an index

const char* CheckArgument(const Argument& argument, uint32_t device_count) {
  if (argument.tag == ArgTag::kTensor && argument.tensor.device >= device_count) {
    return "a tensor is on a device that the session lacks";
  }
  if (argument.tag == ArgTag::kDevice && argument.device == DeviceKind::kFlagos && argument.integer != kNoIndex &&
      argument.integer >= device_count) {
    return "an argument names a device that the session lacks";
  }
  for (const Argument& item : argument.list) {
    if (const char* wrong = CheckArgument(item, device_count)) return wrong;
  }
  return nullptr;
}

const char* CheckOutput(const Output& output, uint32_t device_count) {
  const bool tensor = output.tag == OutputTag::kTensor || output.tag == OutputTag::kAlias;
  if (tensor && output.geometry.device >= device_count) {
    return "an expected output is on a device that the session lacks";
  }
  for (const Output& item : output.list) {
    if (const char* wrong = CheckOutput(item, device_count)) return wrong;
  }
  return nullptr;
}

}  // namespace

void SignatureTable::define(uint32_t signature, const Signature& definition, uint32_t operator_place) {
  if (signature >= shapes_.size()) shapes_.resize(std::max<size_t>(signature + 1, shapes_.size() * 2));
  CallShape& shape = shapes_[signature];
  shape.free_bytes = static_cast<uint32_t>(definition.free_bytes);
  shape.operator_place = operator_place;
  shape.inputs = static_cast<uint16_t>(definition.inputs);
  // Without a prediction the client does not know the number of outputs: what it offers beyond the need stays unused.
  shape.min_outputs = 0;
  shape.max_outputs = std::numeric_limits<uint16_t>::max();
  if (definition.predicted) {
    shape.min_outputs = shape.max_outputs = static_cast<uint16_t>(OutputHandles(definition.expected));
  }
  shape.defined = true;
}

void SignatureTable::drop(uint32_t signature) {
  if (signature < shapes_.size()) shapes_[signature] = CallShape{};
}

const char* CheckSignature(const Signature& signature, uint32_t device_count) {
  if (signature.op >= kMaxOperators) return "its operator's number is out of bounds";
  if (signature.context >= kMaxContexts) return "its context's number is out of bounds";
  if (signature.free_bytes > std::numeric_limits<uint32_t>::max()) return "its free values are too large";
  for (const Argument& argument : signature.arguments) {
    if (const char* wrong = CheckArgument(argument, device_count)) return wrong;
  }
  for (const Output& output : signature.expected.outputs) {
    if (const char* wrong = CheckOutput(output, device_count)) return wrong;
  }
  for (const Resized& resized : signature.expected.resized) {
    if (resized.geometry.device >= device_count) return "an expected result is on a device that the session lacks";
  }
  if (OutputHandles(signature.expected) > std::numeric_limits<uint16_t>::max()) return "it has too many outputs";
  return nullptr;
}

}  // namespace flagos::executor
