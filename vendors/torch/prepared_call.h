// SPDX-License-Identifier: Apache-2.0
// A signature decoded into what a call pushes: constants made once, tensors ready but for their storage.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <vector>

#include "proto/wire/signature.h"
#include "vendors/torch/device_runtime.h"
#include "vendors/torch/operator.h"

namespace flagos::torch_host {

struct PreparedTensor {
  // kTensor, kHostScalar, kHostTensor, kInlineTensor; kSparseTensor; kNone: undefined, in a list
  ArgTag tag = ArgTag::kNone;
  bool written = false;      // the call writes to it
  bool resizable = false;    // the call may resize it; never lent
  bool same = false;         // an out= tensor that is an operand too
  bool copy = false;         // of kHostTensor: the kernel gets a private copy, which the client cannot change under it
  uint32_t input = 0;        // kTensor: which of the call's inputs; kSparseTensor: which of its sparse tensors
  uint32_t free_offset = 0;  // else: where its value or range lies in the call's free bytes
  uint64_t bytes = 0;        // that its storage must have
  Geometry geometry;
  // Lent to one call after the other: has the geometry, and a storage only during a call. Null until first used.
  at::Tensor lent;
};

// A sparse argument: made anew for each call, for kernels change the structure of what they write.
struct PreparedSparse {
  SparseShape shape;
  bool written = false;  // the call writes to it
  std::vector<PreparedTensor> components;
};

// Whether a tensor stands on one storage.
constexpr bool IsDense(ArgTag tag) {
  return tag >= ArgTag::kTensor && tag <= ArgTag::kInlineTensor;  // one comparison
}

struct Slot {
  enum class Kind : uint8_t {
    kConstant,
    kTensor,
    kTensorList,
    kOptionalTensorList,
    kScalar,
    kScalarList,
    kDouble,
    kGenerator,
    kDefaultGenerator,  // of the call's device
    kCallDevice
  };
  Kind kind = Kind::kConstant;
  ScalarKind scalar = ScalarKind::kInt;
  uint32_t free_offset = 0;
  uint32_t first = 0, count = 0;    // of the call's tensors
  std::vector<ScalarKind> scalars;  // kScalarList
  c10::IValue value;                // kConstant; of lists: the one that holds the lent tensors
};

struct PreparedCall {
  std::shared_ptr<const Operator> op;
  uint32_t context = 0;
  size_t inputs = 0;
  size_t free_bytes = 0;
  std::vector<Slot> slots;
  std::vector<PreparedTensor> tensors;
  std::vector<PreparedSparse> sparse;  // those of `tensors` that are sparse
  std::vector<uint32_t> written;       // of the tensors: those with a handle that the call writes to
  std::vector<uint32_t> resizable;     // of these: out= tensors
  bool plain = true;                   // no tensor is sparse, or lazily conjugated or negated
  bool direct = true;                  // plain, and for the vendor's own kernel
  KernelRoute* route = nullptr;        // op's, where its kernel runs this call
  bool same = false;                   // some out= tensor is an operand too
  bool copies = false;                 // some host tensor is copied first
  bool uses_arena = false;             // some host tensor lies there: the answer comes when the device is done with it
  bool lends = false;                  // prepared tensors serve one call after the other
  // What an asynchronous call must return: predicted by the client, or what the first synchronous call returned.
  bool predicted = false;
  std::optional<Outcome> expected;
  size_t output_handles = 0;  // that `expected` takes
};

// Checks the arguments against the operator's schema.
Result<std::shared_ptr<PreparedCall>> Prepare(Signature signature, std::shared_ptr<const Operator> op,
                                              const DeviceRuntime& runtime);

}  // namespace flagos::torch_host
