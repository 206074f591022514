// SPDX-License-Identifier: Apache-2.0
#include "client/forward/doubt.h"

#include <ATen/MemoryOverlap.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "client/forward/signature_table.h"

namespace flagos::client {
namespace {

// More operands than this are those of multi-tensor operators, which PyTorch takes apart where they overlap.
constexpr size_t kFewOperands = 16;
constexpr double kMostFloat = std::numeric_limits<float>::max();
constexpr double kMostBFloat16 = 0x1.FEp127;

bool Overlap(const CallBuffer& buffer, size_t a, size_t b) {
  return a != b && buffer.inputs[a] == buffer.inputs[b] && buffer.inputs[a] != 0 &&
         at::get_overlap_status(buffer.tensors[a], buffer.tensors[b]) == at::MemOverlapStatus::Partial;
}

bool WritesIntoAnother(const CallBuffer& buffer) {
  const size_t count = buffer.inputs.size();
  if (count < 2 || count > kFewOperands) return false;
  for (size_t written = 0; written < count; ++written) {
    if ((buffer.written >> written & 1) == 0) continue;
    for (size_t other = 0; other < count; ++other) {
      if (Overlap(buffer, written, other)) return true;
    }
  }
  return false;
}

// As c10::overflows() has it: unsigned types also take the negative of what they hold, real ones take no number for an
// infinite one.
bool Holds(c10::ScalarType dtype, double number) {
  const auto within = [&](double least, double most) { return number >= least && number <= most; };
  switch (dtype) {
    case c10::ScalarType::Byte: return within(-255, 255);
    case c10::ScalarType::Char: return within(-128, 127);
    case c10::ScalarType::Short: return within(-32768, 32767);
    case c10::ScalarType::UInt16: return within(-65535, 65535);
    case c10::ScalarType::Int: return within(-2147483648.0, 2147483647.0);
    case c10::ScalarType::UInt32: return within(-4294967295.0, 4294967295.0);
    case c10::ScalarType::Long:
    case c10::ScalarType::UInt64: return within(-9223372036854775808.0, 9223372036854774784.0);
    case c10::ScalarType::Half:
    case c10::ScalarType::ComplexHalf: return within(-65504.0, 65504.0) || !std::isfinite(number);
    case c10::ScalarType::BFloat16: return within(-kMostBFloat16, kMostBFloat16) || !std::isfinite(number);
    case c10::ScalarType::Float:
    case c10::ScalarType::ComplexFloat: return within(-kMostFloat, kMostFloat) || !std::isfinite(number);
    case c10::ScalarType::Double:
    case c10::ScalarType::ComplexDouble:
    case c10::ScalarType::Bool: return true;
    default: return false;  // 8-bit floats and what may come: ask
  }
}

bool IsReal(const c10::IValue& value) { return value.isInt() || value.isDouble(); }

bool FitsEverything(double number) { return number >= -128 && number <= 127; }

// A real number makes the result of integral operands a real one: there it has to fit only what is written.
bool FitsOperands(const c10::IValue& value, const CallBuffer& buffer) {
  const double number = value.isInt() ? static_cast<double>(value.toInt()) : value.toDouble();
  if (FitsEverything(number)) return true;
  const size_t count = std::min(buffer.tensors.size(), kFewOperands);
  for (size_t i = 0; i < count; ++i) {
    auto dtype = buffer.tensors[i]->dtype().toScalarType();
    const bool written = (buffer.written >> i & 1) != 0;
    if (value.isDouble() && !written && c10::isIntegralType(dtype, true))
      dtype = c10::get_default_dtype_as_scalartype();
    if (!Holds(dtype, number)) return false;
  }
  return true;
}

bool HasOddNumber(const Operator& op, std::span<const c10::IValue> arguments, const CallBuffer& buffer) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    if (op.arguments[i].kind == ArgumentKind::kScalarList && value.isList()) {
      const auto items = value.toListRef();
      if (!std::ranges::all_of(items,
                               [&](const c10::IValue& item) { return !IsReal(item) || FitsOperands(item, buffer); }))
        return true;
    }
    if (op.arguments[i].kind != ArgumentKind::kScalar || !IsReal(value)) continue;
    if (!FitsOperands(value, buffer)) return true;
    if (op.is_power && value.isInt() && value.toInt() < 0 && !buffer.tensors.empty() &&
        c10::isIntegralType(buffer.tensors[0]->dtype().toScalarType(), true)) {
      return true;
    }
  }
  return false;
}

uint64_t NumbersKey(const CallBuffer& buffer) { return HashSignature(buffer.free_bytes.span()) | 1; }

}  // namespace

bool IsDoubtful(const Operator& op, std::span<const c10::IValue> arguments, const CallBuffer& buffer) {
  return buffer.covered || !buffer.sparse.empty() || (buffer.written != 0 && WritesIntoAnother(buffer)) ||
         HasOddNumber(op, arguments, buffer) ||
         (op.is_distribution && !op.accepted_numbers.contains(NumbersKey(buffer)));
}

void Accepted(Operator& op, const CallBuffer& buffer) {
  if (op.is_distribution) op.accepted_numbers.add(NumbersKey(buffer));
}

}  // namespace flagos::client
