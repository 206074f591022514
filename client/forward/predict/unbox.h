// SPDX-License-Identifier: Apache-2.0
// Boxed arguments as the parameters of PyTorch's structured meta functions.
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/ivalue.h>
#include <c10/util/OptionalArrayRef.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/forward/predict/twin.h"

namespace flagos::client {

inline at::Tensor TwinOf(const c10::IValue& value) {
  if (value.isNone()) return {};
  c10::TensorImpl* const impl = value.unsafeToTensorImpl();
  return impl == c10::UndefinedTensorImpl::singleton() ? at::Tensor() : MetaTwin(*impl);
}

inline c10::DimVector IntsOf(const c10::IValue& value) {
  c10::DimVector ints;
  for (const c10::IValue& item : value.toListRef()) ints.push_back(item.toInt());
  return ints;
}

// Holds what a parameter of type T refers to for the time of one call; get() yields the parameter.
template <class T>
struct Unboxed;

template <>
struct Unboxed<const at::Tensor&> {
  explicit Unboxed(const c10::IValue& value) : twin(TwinOf(value)) {}
  const at::Tensor& get() const { return twin; }
  at::Tensor twin;
};
template <>
struct Unboxed<at::OptionalTensorRef> {
  explicit Unboxed(const c10::IValue& value) : twin(TwinOf(value)) {}
  at::OptionalTensorRef get() const { return twin.defined() ? at::OptionalTensorRef(twin) : at::OptionalTensorRef(); }
  at::Tensor twin;
};
template <>
struct Unboxed<const at::ITensorListRef&> {
  explicit Unboxed(const c10::IValue& value) {
    for (const c10::IValue& item : value.toListRef()) twins.push_back(TwinOf(item));
    list = at::ITensorListRef(twins);
  }
  const at::ITensorListRef& get() const { return *list; }
  std::vector<at::Tensor> twins;
  std::optional<at::ITensorListRef> list;
};
template <>
struct Unboxed<const at::Scalar&> {
  explicit Unboxed(const c10::IValue& value) : scalar(value.toScalar()) {}
  const at::Scalar& get() const { return scalar; }
  at::Scalar scalar;
};
template <>
struct Unboxed<at::OptionalScalarRef> {
  explicit Unboxed(const c10::IValue& value) {
    if (!value.isNone()) scalar = value.toScalar();
  }
  at::OptionalScalarRef get() const { return scalar ? at::OptionalScalarRef(*scalar) : at::OptionalScalarRef(); }
  std::optional<at::Scalar> scalar;
};
template <>
struct Unboxed<at::IntArrayRef> {
  explicit Unboxed(const c10::IValue& value) : ints(IntsOf(value)) {}
  at::IntArrayRef get() const { return ints; }
  c10::DimVector ints;
};
template <>
struct Unboxed<at::OptionalIntArrayRef> {
  explicit Unboxed(const c10::IValue& value) {
    if (!value.isNone()) ints = IntsOf(value);
  }
  at::OptionalIntArrayRef get() const { return ints ? at::OptionalIntArrayRef(*ints) : std::nullopt; }
  std::optional<c10::DimVector> ints;
};
template <>
struct Unboxed<std::string_view> {
  explicit Unboxed(const c10::IValue& value) : text(value.toStringView()) {}
  std::string_view get() const { return text; }
  std::string_view text;
};
template <>
struct Unboxed<std::optional<std::string_view>> {
  explicit Unboxed(const c10::IValue& value) {
    if (!value.isNone()) text = value.toStringView();
  }
  std::optional<std::string_view> get() const { return text; }
  std::optional<std::string_view> text;
};

// Numbers and enums.
template <class T>
T PlainOf(const c10::IValue& value) {
  if constexpr (std::is_same_v<T, int64_t>) return value.toInt();
  if constexpr (std::is_same_v<T, bool>) return value.toBool();
  if constexpr (std::is_same_v<T, double>) return value.toDouble();
  if constexpr (std::is_same_v<T, at::ScalarType>) return value.toScalarType();
}
template <class T>
requires std::is_same_v<T, int64_t> || std::is_same_v<T, bool> || std::is_same_v<T, double> ||
    std::is_same_v<T, at::ScalarType>
struct Unboxed<T> {
  explicit Unboxed(const c10::IValue& value) : plain(PlainOf<T>(value)) {}
  T get() const { return plain; }
  T plain;
};
template <class T>
requires std::is_same_v<T, int64_t> || std::is_same_v<T, bool> || std::is_same_v<T, double> ||
    std::is_same_v<T, at::ScalarType>
struct Unboxed<std::optional<T>> {
  explicit Unboxed(const c10::IValue& value) {
    if (!value.isNone()) plain = PlainOf<T>(value);
  }
  std::optional<T> get() const { return plain; }
  std::optional<T> plain;
};

}  // namespace flagos::client
