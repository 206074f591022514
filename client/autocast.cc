// SPDX-License-Identifier: Apache-2.0
// Mixed precision: which operators torch.autocast("flagos") runs in which type. PyTorch's own lists, as for CUDA,
// but for binary_cross_entropy, which is not refused: it runs in the type of its operands.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "client/register.h"

namespace flagos::client {
namespace {

// The macros name its types, each version of PyTorch others.
using namespace at;  // NOLINT(google-build-using-namespace)

#define FLAGOS_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLAGOS_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FLAGOS_FP32_OPTIONAL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define FLAGOS_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

void RegisterPolicies(torch::Library& m) {
  AT_FORALL_LOWER_PRECISION_FP(FLAGOS_LOWER)
  AT_FORALL_FP32(FLAGOS_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FLAGOS_FP32_OPTIONAL)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(FLAGOS_PROMOTE)
}

}  // namespace

void RegisterAutocast() {
  // Libraries unregister what they hold when they go, so they stay.
  static auto& others =
      *new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  static auto& aten =
      *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  others.fallback(torch::CppFunction::makeFallthrough());
  RegisterPolicies(aten);
}

}  // namespace flagos::client
