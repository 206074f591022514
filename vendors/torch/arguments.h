// SPDX-License-Identifier: Apache-2.0
// From a call's handles and free bytes to the stack that its kernel takes.
#pragma once

#include <span>

#include "vendors/interface/vendor.h"
#include "vendors/torch/call_frame.h"
#include "vendors/torch/generators.h"
#include "vendors/torch/storage_table.h"

namespace flagos::torch_host {

// Dispatch thread only. Checks everything that a call says: a tensor never reaches beyond its storage or range.
class Arguments {
 public:
  Arguments(DeviceRuntime& runtime, const StorageTable& table, Generators& generators, std::span<std::byte> arena)
      : runtime_(runtime), table_(table), generators_(generators), arena_(arena) {}

  // Pushes every argument. With `lend` the prepared tensors themselves are pushed, which saves making new ones; they
  // must be taken back before the next call. Throws Refusal or PoisonedInput; the frame is then partly filled.
  void push(PreparedCall& prepared, const vendor::Call& call, CallFrame& frame, bool lend);
  // After the frame was cleared: the tensors let go of their storages.
  static void take_back(PreparedCall& prepared) noexcept;

 private:
  // The storage that the tensor stands on in this call; checked to be large enough.
  c10::Storage storage(const PreparedCall& prepared, const PreparedTensor& item, const vendor::Call& call) const;
  // A storage that another thread may be reading is not resized under it: a call that may resize works on storages of
  // its own over the same bytes, one for each handle, so that PyTorch sees which operands overlap.
  bool shadows(const PreparedCall& prepared) const;
  static c10::Storage shadow(uint32_t handle, const c10::Storage& storage, CallFrame& frame);
  c10::Storage host_storage(const PreparedCall& prepared, const PreparedTensor& item, const vendor::Call& call) const;
  at::Tensor tensor(const PreparedCall& prepared, PreparedTensor& item, const vendor::Call& call, CallFrame& frame,
                    bool lend) const;
  // Its components, from which the sparse tensor is made when the call runs; an undefined tensor until then.
  at::Tensor sparse_tensor(const PreparedCall& prepared, const PreparedSparse& sparse, const vendor::Call& call,
                           CallFrame& frame) const;
  // The operand that an out= tensor is; undefined where there is none.
  at::Tensor same(const PreparedTensor& item, const vendor::Call& call, CallFrame& frame) const;
  c10::IValue tensor_list(PreparedCall& prepared, Slot& slot, const vendor::Call& call, CallFrame& frame,
                          bool lend) const;

  DeviceRuntime& runtime_;
  const StorageTable& table_;
  Generators& generators_;
  const std::span<std::byte> arena_;
};

}  // namespace flagos::torch_host
