// SPDX-License-Identifier: Apache-2.0
// copy_ in every direction.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/Event.h>

#include "client/device.h"
#include "client/forward/call.h"
#include "client/forward/host_copy.h"
#include "client/forward/local.h"
#include "client/forward/predict/twin.h"

namespace flagos::client {
namespace {

// Raises what PyTorch raises for a copy whose sizes do not fit.
void CheckSizes(const at::Tensor& to, const at::Tensor& from) {
  if (to.sizes() == from.sizes() || at::is_expandable_to(from.sizes(), to.sizes())) [[likely]]
    return;
  const at::Tensor to_twin = MetaTwin(*to.unsafeGetTensorImpl());
  const at::Tensor from_twin = MetaTwin(*from.unsafeGetTensorImpl());
  at::TensorIteratorConfig()
      .add_output(to_twin)
      .add_const_input(from_twin)
      .resize_outputs(false)
      .check_all_same_dtype(false)
      .check_all_same_device(false)
      .build();
}

void CheckKind(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == c10::kStrided && !tensor.is_quantized() && !tensor.is_nested(),
      "flagos: copy_ between the device and a ", tensor.layout(), " ", tensor.scalar_type(),
      " tensor: the device has dense tensors of plain numbers only. Convert it on the CPU first "
      "(.to_dense(), .dequantize())");
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.device().is_cpu() || tensor.device().is_privateuseone(), "flagos: copy_ between ",
                              tensor.device(),
                              " and the device server's devices: copy through "
                              "the CPU (.cpu())");
}

void CopyOnDevices(const at::Tensor& to, const at::Tensor& from) {
  static Operator& copy = Operator::Find("aten::copy_");
  torch::jit::Stack stack{to, from, /*non_blocking=*/false};
  if (to.device() == from.device()) {
    Call(copy, stack);
    return;
  }
  // Runs on the destination's stream, between what both streams have done and what they do next.
  const c10::Stream to_stream = CurrentStream(to.device().index());
  const c10::Stream from_stream = CurrentStream(from.device().index());
  c10::Event before(c10::kPrivateUse1);
  before.record(from_stream);
  before.block(to_stream);
  Call(copy, stack);
  c10::Event after(c10::kPrivateUse1);
  after.record(to_stream);
  after.block(from_stream);
}

at::Tensor& Copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source)) return self;
  const bool to_device = self.device().is_privateuseone();
  const bool from_device = source.device().is_privateuseone();
  if (!to_device || !from_device) {
    CheckKind(self);
    CheckKind(source);
  }
  CheckSizes(self, source);
  if (self.numel() == 0) return self;
  const at::AutoDispatchBelowADInplaceOrView below;
  if (!to_device) {
    CopyToHost(self, source, non_blocking);
  } else if (!from_device) {
    CopyToDevice(self, source, non_blocking);
  } else {
    CopyOnDevices(self, source);
  }
  return self;
}

at::Tensor CopyFrom(const at::Tensor& source, const at::Tensor& to, bool non_blocking) {
  at::Tensor self = to;
  return Copy(self, source, non_blocking);
}

at::Tensor CopyFromAndResize(const at::Tensor& source, const at::Tensor& to) {
  to.resize_(source.sizes());
  return CopyFrom(source, to, false);
}

// PyTorch's own pins what it copies to the host only where it copies asynchronously, whatever it is told.
at::Tensor ToCopy(const at::Tensor& self, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                  std::optional<c10::Device> device, std::optional<bool> pin_memory, bool non_blocking,
                  std::optional<c10::MemoryFormat> format) {
  if (!pin_memory.value_or(false))
    return at::native::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, format);
  TORCH_CHECK(device && device->is_cpu(), "pin_memory=True goes with a copy to the CPU only, not to ",
              device.value_or(self.device()));
  at::Tensor copy = at::empty_like(self, dtype, layout, device, true, format);
  copy.copy_(self, non_blocking);
  return copy;
}

// The multi-tensor operator wants all tensors on one device; PyTorch's optimizers and FSDP also copy between devices.
void ForeachCopy(at::TensorList self, at::TensorList source, bool non_blocking) {
  TORCH_CHECK(self.size() == source.size(), "Tensor lists must have the same number of tensors, got ", self.size(),
              " and ", source.size());
  const auto same_device = [&](const at::Tensor& tensor) { return tensor.device() == self[0].device(); };
  if (!self.empty() && std::ranges::all_of(self, same_device) && std::ranges::all_of(source, same_device)) {
    static Operator& copy = Operator::Find("aten::_foreach_copy_");
    torch::jit::Stack stack{self, source, false};
    Call(copy, stack);
    return;
  }
  for (size_t i = 0; i < self.size(); ++i) self[i].copy_(source[i], non_blocking);
}

}  // namespace

void RegisterCopies(torch::Library& library) {
  library.impl("copy_", TORCH_FN(Copy));
  library.impl("_copy_from", TORCH_FN(CopyFrom));
  library.impl("_copy_from_and_resize", TORCH_FN(CopyFromAndResize));
  library.impl("_foreach_copy_", TORCH_FN(ForeachCopy));
  library.impl("_to_copy", TORCH_FN(ToCopy));
}

}  // namespace flagos::client
