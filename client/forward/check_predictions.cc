// SPDX-License-Identifier: Apache-2.0
#include "client/forward/check_predictions.h"

#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace flagos::client {
namespace {

// Strides of a tensor without elements mean nothing.
bool Same(const Geometry& one, const Geometry& other) {
  if (one.numel() == 0) return one.dtype == other.dtype && one.sizes == other.sizes;
  return one == other;
}

// Of an output only what its tag speaks of counts.
bool Same(const Output& one, const Output& other) {
  const bool tensor = one.tag == OutputTag::kTensor || one.tag == OutputTag::kAlias;
  return one.tag == other.tag && (!tensor || Same(one.geometry, other.geometry)) &&
         (one.tag != OutputTag::kAlias || one.alias == other.alias) &&
         std::ranges::equal(one.list, other.list, [](const Output& a, const Output& b) { return Same(a, b); });
}

void Describe(std::ostream& out, const Output& output) {
  switch (output.tag) {
    case OutputTag::kTensor:
    case OutputTag::kAlias:
      out << (output.tag == OutputTag::kAlias ? "a view of input " + std::to_string(output.alias) : "a tensor")
          << " of dtype " << int{static_cast<uint8_t>(output.geometry.dtype)} << ", sizes "
          << c10::IntArrayRef(output.geometry.sizes) << ", strides " << c10::IntArrayRef(output.geometry.strides)
          << ", offset " << output.geometry.offset << ", flags " << int{output.geometry.flags};
      break;
    case OutputTag::kList:
      for (const Output& item : output.list) {
        Describe(out, item);
        out << "; ";
      }
      break;
    default: out << "a result of kind " << int{static_cast<uint8_t>(output.tag)}; break;
  }
}

std::string Describe(const Outcome& outcome) {
  std::ostringstream out;
  for (const Output& output : outcome.outputs) {
    out << "\n  ";
    Describe(out, output);
  }
  for (const Resized& resized : outcome.resized) {
    out << "\n  input " << resized.input << " resized to " << c10::IntArrayRef(resized.geometry.sizes) << ", strides "
        << c10::IntArrayRef(resized.geometry.strides);
  }
  return out.str();
}

}  // namespace

bool ChecksPredictions() {
  static const bool checks = [] {
    const char* const text = std::getenv("FLAGOS_CHECK_PREDICTIONS");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return checks;
}

void CheckPrediction(const Operator& op, const Outcome& predicted, const Outcome& actual) {
  const auto same_resized = [](const Resized& one, const Resized& other) {
    return one.input == other.input && Same(one.geometry, other.geometry);
  };
  const bool same = std::ranges::equal(predicted.outputs, actual.outputs,
                                       [](const Output& a, const Output& b) { return Same(a, b); }) &&
                    std::ranges::equal(predicted.resized, actual.resized, same_resized);
  TORCH_CHECK(same, "flagos: '", op.name,
              "' does not return what was predicted; report this as a bug. Predicted:", Describe(predicted),
              "\nreturned:", Describe(actual));
}

void ThrowAdapted(const Operator& op) {
  TORCH_CHECK(false, "flagos: '", op.name,
              "' does not return the strides that it returned for the same arguments before; report this as a bug");
}

}  // namespace flagos::client
