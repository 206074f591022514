// SPDX-License-Identifier: Apache-2.0
// Predictors made of PyTorch's structured kernels: their meta functions compute and check geometry, called here
// directly with twins of the arguments. A third of a microsecond to one; through the dispatcher's Meta key it would be
// Python.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <torch/version.h>

#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "client/forward/predict/geometry.h"
#include "client/forward/predict/predictor.h"
#include "client/forward/predict/tables.h"
#include "client/forward/predict/unbox.h"

// Until PyTorch 2.12 outputs also had names of dimensions.
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 13
#define FLAGOS_NAMES , at::DimnameList
#define FLAGOS_NO_NAMES \
  , {}
#else
#define FLAGOS_NAMES
#define FLAGOS_NO_NAMES
#endif

namespace flagos::client {

// The outputs that a meta function asked for, as meta tensors; undefined beyond the last.
using MetaOutputs = std::array<at::Tensor, 6>;

// A structured kernel that remembers what its meta function wants instead of allocating it.
template <class Meta>
class Recorder final : public Meta {
 public:
  explicit Recorder(MetaOutputs& outputs) : outputs_(outputs) {}
  const at::Tensor& maybe_get_output(int64_t index) override { return outputs_[static_cast<size_t>(index)]; }
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options FLAGOS_NAMES) override {
    record(index, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options FLAGOS_NAMES) override {
    record(index, sizes, strides, options);
  }

 private:
  void record(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
    at::Tensor& output = outputs_[static_cast<size_t>(index)];
    output =
        MetaTensor(sizes, strides.empty() ? at::IntArrayRef(c10::contiguous_strides(sizes)) : strides, options.dtype());
    if (strides.empty() && options.has_memory_format()) {
      output.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
    }
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
      at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options FLAGOS_NO_NAMES);
    }
  }
  MetaOutputs& outputs_;
};

template <class Meta, class Result, class Base, class... Parameters, size_t... Index>
MetaOutputs RunMeta(Arguments arguments, Result (Base::*)(Parameters...), std::index_sequence<Index...>) {
  MetaOutputs outputs;
  if (arguments.size() < sizeof...(Parameters)) return outputs;
  const std::tuple<Unboxed<Parameters>...> unboxed{Unboxed<Parameters>(arguments[Index])...};
  Recorder<Meta> recorder(outputs);
  recorder.meta(std::get<Index>(unboxed).get()...);
  return outputs;
}

template <class Result, class Base, class... Parameters>
constexpr size_t ParameterCount(Result (Base::*)(Parameters...)) {
  return sizeof...(Parameters);
}

template <class Meta>
MetaOutputs RunMeta(Arguments arguments) {
  constexpr size_t kCount = ParameterCount(&Meta::meta);
  return RunMeta<Meta>(arguments, &Meta::meta, std::make_index_sequence<kCount>());
}

// The functional form: results are new.
template <class Meta>
bool PredictNew(Arguments arguments, Outcome& outcome) {
  for (const at::Tensor& output : RunMeta<Meta>(arguments)) {
    if (output.defined()) outcome.outputs.push_back(NewOutput(output));
  }
  return !outcome.outputs.empty();
}

// Results go where arguments from `target` on lie.
template <class Meta>
bool PredictWritten(Arguments arguments, size_t target) {
  constexpr bool kCasts = std::is_base_of_v<at::TensorIteratorBase, Meta>;
  for (const at::Tensor& output : RunMeta<Meta>(arguments)) {
    if (!output.defined()) break;
    if (target == arguments.size() || !WritesInPlace(arguments, target, output.sizes(), output.scalar_type(), kCasts)) {
      return false;
    }
    ++target;
  }
  return true;
}
template <class Meta>
bool PredictInPlace(Arguments arguments, Outcome&) {
  return PredictWritten<Meta>(arguments, 0);
}
template <class Meta>
bool PredictOut(Arguments arguments, Outcome&) {
  return PredictWritten<Meta>(arguments, ParameterCount(&Meta::meta));
}

// Rows of a structured operator: "add", "Tensor", "out" gives aten::add.Tensor, aten::add_.Tensor and aten::add.out.
template <class Meta>
void AddStructured(PredictorRows& rows, std::string_view name, std::string_view overload = "",
                   std::string_view out = "out") {
  const auto full = [&](std::string_view suffix, std::string_view variant) {
    std::string text = "aten::" + std::string(name) + std::string(suffix);
    if (!variant.empty()) text += "." + std::string(variant);
    return text;
  };
  rows.emplace_back(full("", overload), &PredictNew<Meta>);
  rows.emplace_back(full("_", overload), &PredictInPlace<Meta>);
  rows.emplace_back(full("", out), &PredictOut<Meta>);
}

}  // namespace flagos::client
