// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "vendors/torch/dtypes.h"
#include "vendors/torch/failures.h"
#include "vendors/torch/results.h"
#include "vendors/torch/tensors.h"

namespace flagos::torch_host {
namespace {

// Keys of a tensor that say nothing about its bytes.
constexpr c10::DispatchKeySet kModes =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;

// What an inference tensor has: its own key, and autocast's, which nothing here turns on.
c10::DispatchKeySet PlainKeys(c10::DispatchKey key) {
  const c10::DispatchKeySet keys(key);
  return keys | c10::getAutocastRelatedKeySetFromBackend(keys.highestBackendKey());
}

class Adapter {
 public:
  Adapter(const PreparedCall& call, const CallInputs& inputs, AllocateResult allocate,
          std::span<const c10::Storage> bound, std::vector<c10::Storage>& storages)
      : call_(call),
        inputs_(inputs),
        allocate_(allocate),
        bound_(bound),
        storages_(storages),
        plain_(PlainKeys(inputs.key)) {}

  void tensor(const at::Tensor& tensor, const Output& expected) {
    switch (expected.tag) {
      case OutputTag::kUndefined: as_expected_ = as_expected_ && !tensor.defined(); return;
      case OutputTag::kTensor: fresh(tensor, expected); return;
      case OutputTag::kAlias: alias(tensor, expected); return;
      default: refuse("a tensor where the client expects a value", tensor);
    }
  }

  void list(const c10::IValue& value, const Output& expected) {
    const auto items = value.toListRef();
    if (expected.tag != OutputTag::kList || items.size() != expected.list.size()) {
      throw Refusal(ErrorCode::kInternal,
                    call_.op->name + " returned a list of another length than the client expects");
    }
    for (size_t i = 0; i < items.size(); ++i) tensor(items[i].toTensor(), expected.list[i]);
  }

  void value(const Output& expected) const {
    const OutputTag tag = expected.tag;
    if (tag == OutputTag::kTensor || tag == OutputTag::kAlias || tag == OutputTag::kList) {
      refuse("a value where the client expects tensors", at::Tensor());
    }
  }

  bool as_expected() const { return as_expected_; }

 private:
  [[noreturn]] void refuse(const char* what, const at::Tensor& tensor) const {
    throw Refusal(ErrorCode::kInternal,
                  c10::str(call_.op->name, " returned ", what, tensor.defined() ? c10::str(tensor.sizes()) : "",
                           "; an operator whose results' sizes depend on data must carry the tag "
                           "dynamic_output_shape, else report this as a bug"));
  }

  // The common case, and what it must not cost: no reference is counted but the result's own.
  bool takes(const at::Tensor& tensor, const Output& expected) const {
    if (!tensor.defined()) return false;
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    return impl->key_set() - kModes == c10::DispatchKeySet(inputs_.key) && expected.geometry.flags == 0 &&
           impl->dtype() == c10::scalarTypeToTypeMeta(ToScalarType(expected.geometry.dtype)) &&
           SameLayout(tensor, expected.geometry) && impl->unsafe_storage().unique() &&
           impl->unsafe_storage().nbytes() >= expected.storage_bytes;
  }

  void fresh(const at::Tensor& tensor, const Output& expected) {
    if (bound_.empty() && takes(tensor, expected)) [[likely]] {
      storages_.push_back(tensor.storage());
      return;
    }
    if (!tensor.defined()) refuse("no tensor where the client expects one", tensor);
    if (tensor.layout() != c10::kStrided || !SameValues(tensor, expected.geometry)) {
      refuse("another dtype or other sizes than the client expects: ", tensor);
    }
    as_expected_ = as_expected_ && !bound_.empty() && SameLayout(tensor, expected.geometry);
    c10::Storage storage = bound_.empty() ? allocate_(expected.storage_bytes) : bound_[storages_.size()];
    TensorOver(storage, expected.geometry, inputs_.key).copy_(tensor);
    storages_.push_back(std::move(storage));
  }

  void alias(const at::Tensor& tensor, const Output& expected) {
    const bool same = tensor.defined() && SameValues(tensor, expected.geometry) &&
                      SameLayout(tensor, expected.geometry) && expected.alias < inputs_.count &&
                      inputs_.input(expected.alias) == tensor.storage().unsafeGetStorageImpl();
    if (!same) refuse("a tensor that is not the view of its input that the client expects: ", tensor);
  }

  const PreparedCall& call_;
  const CallInputs& inputs_;
  const AllocateResult allocate_;
  const std::span<const c10::Storage> bound_;
  std::vector<c10::Storage>& storages_;
  const c10::DispatchKeySet plain_;  // of a dense tensor of the device that is not lazily anything
  bool as_expected_ = true;
};

}  // namespace

bool Adapt(const PreparedCall& call, CallFrame& frame, const CallInputs& inputs, AllocateResult allocate,
           std::span<const c10::Storage> bound, std::vector<c10::Storage>& storages) {
  Adapter adapter(call, inputs, allocate, bound, storages);
  const std::vector<Output>& expected = call.expected->outputs;
  size_t next = 0;
  for (size_t i = 0; i < frame.stack.size() && i < call.op->returns.size(); ++i) {
    if (call.op->returns[i] == ReturnKind::kMutatedArgument) continue;
    if (next == expected.size()) {
      throw Refusal(ErrorCode::kMalformed, call.op->name + " returns more than the client expects");
    }
    const c10::IValue& value = frame.stack[i];
    if (value.isTensor()) {
      adapter.tensor(value.toTensor(), expected[next]);
    } else if (value.isTensorList()) {
      adapter.list(value, expected[next]);
    } else {
      adapter.value(expected[next]);
    }
    ++next;
  }
  if (next != expected.size()) {
    throw Refusal(ErrorCode::kMalformed, call.op->name + " returns less than the client expects");
  }
  return adapter.as_expected();
}

}  // namespace flagos::torch_host
