// SPDX-License-Identifier: Apache-2.0
// What a kernel library gives: kernels that run operators in place of the vendor's own, where a user or flagosd's
// configuration chooses them. It is a shared object, libflagos_kernels_NAME.so, in the vendor's folder or in one that
// the vendor's option `kernels` names, with one line of registration; vendors/cpu/kernels/accurate is an example.
//
// A kernel is as PyTorch's: the operator's schema says its arguments and results, and the library is built against the
// executor's libtorch (another version is refused). It keeps PyTorch's contract of dtype, sizes and aliasing: the
// client predicts results and goes on; other strides are made to fit and cost a copy, other sizes or dtypes fail the
// call.
//
// Threads: a kernel may run on several threads at once, for streams that run side by side, but a session's default
// streams are one thread. It launches on the current stream of a device that has streams, and does not wait for it. The
// thread is below autograd, in inference mode: at:: functions called from a kernel are the vendor's own, never a
// library's.
//
// Ownership: arguments are lent for the call. A kernel gives none of them another shape or storage but an out= tensor,
// which it resizes as PyTorch's kernels do, and keeps none. All of them are dense, lie on the device (or on the host
// where PyTorch allows that) and are not lazily conjugated or negated: calls with others go to the vendor's own
// kernels. Memory comes from at::empty and the like, so that figures and quota cover it.
//
// Errors: a kernel throws c10::Error, or one of PyTorch's kinds, which the client raises as the same kind. An abort or
// a fault ends the session, that one only.
//
// Random numbers: a kernel draws from the Generator that it is given, which is the device's where the program gave
// none; an operator without such an argument draws from PyTorch's default generator of the device. So seeds, saved
// states and the order of draws hold; which numbers come out is the library's.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/op_registration/infer_schema.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <torch/version.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace flagos::torch_host {

inline constexpr uint32_t kKernelInterfaceVersion = 1;

// Whether a kernel runs calls whose tensors have these dtypes: in the order of the arguments, lists flattened, without
// the tensors that PyTorch makes of Python's numbers. Asked once for each signature, not at each call; where it says
// no, the vendor's own kernel runs.
using TakesCalls = bool (*)(std::span<const c10::ScalarType> tensors);

struct Kernel {
  std::string op;  // "aten::sum.dim_IntList"
  c10::KernelFunction function;
  std::optional<c10::FunctionSchema> schema;  // of a plain function; it must be the operator's
  TakesCalls takes = nullptr;                 // null: every call
};

// A kernel that is a plain function, as at::Tensor dot(const at::Tensor&, const at::Tensor&).
template <auto* function>
Kernel MakeKernel(std::string op, TakesCalls takes = nullptr) {
  using Function = std::remove_pointer_t<decltype(function)>;
  return {std::move(op),
          c10::KernelFunction::makeFromUnboxedFunction(c10::CompileTimeFunctionPointer<Function, function>()),
          c10::inferFunctionSchemaFlattenedReturns<Function>(), takes};
}

// A kernel that takes its arguments from a stack: void dot(const c10::OperatorHandle&, c10::Stack*).
template <c10::BoxedKernel::BoxedKernelFunction* function>
Kernel MakeBoxedKernel(std::string op, TakesCalls takes = nullptr) {
  return {std::move(op), c10::KernelFunction::makeFromBoxedFunction<function>(), std::nullopt, takes};
}

// The exported symbol: extern "C" flagos::torch_host::KernelEntry flagos_kernels();
struct KernelEntry {
  uint32_t interface_version;  // kKernelInterfaceVersion
  const char* torch_version;   // that it was built against
  const char* name;            // of the file, libflagos_kernels_NAME.so
  const char* description;     // a line for users
  c10::DeviceType device;      // whose tensors the kernels take
  std::vector<Kernel> (*kernels)();
};
inline constexpr const char* kKernelEntrySymbol = "flagos_kernels";

}  // namespace flagos::torch_host

// The one line of registration in a library's folder: FLAGOS_REGISTER_KERNELS("fast", "what for", c10::kCPU, &Kernels)
#define FLAGOS_REGISTER_KERNELS(name, description, device, kernels)                                            \
  extern "C" __attribute__((visibility("default"))) ::flagos::torch_host::KernelEntry flagos_kernels() {       \
    return {::flagos::torch_host::kKernelInterfaceVersion, TORCH_VERSION, name, description, device, kernels}; \
  }
