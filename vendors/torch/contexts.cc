// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/contexts.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/Exception.h>

#include "vendors/torch/dtypes.h"

namespace flagos::torch_host {
namespace {

enum BackendFlag : uint8_t { kMkldnnEnabled = 32 };
enum SdpFlag : uint8_t { kFlash = 1, kMemoryEfficient = 2, kMath = 4, kCudnn = 8, kOverrideable = 16 };

// What every hosted libtorch has; precision of a backend of its own is the runtime's.
void ApplyCommon(const ContextState& state) {
  at::Context& context = at::globalContext();
  const auto dtype = static_cast<DType>(state.default_dtype);
  if (state.default_dtype < kDTypeCount && c10::isFloatingType(ToScalarType(dtype))) {
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(ToScalarType(dtype)));
  }
  context.setDeterministicAlgorithms(state.deterministic_algorithms != 0, state.deterministic_warn_only != 0);
  context.setDeterministicFillUninitializedMemory(state.deterministic_fill != 0);
  c10::WarningUtils::set_warnAlways(state.warn_always != 0);
  constexpr const char* kPrecisions[] = {"highest", "high", "medium"};
  context.setFloat32MatmulPrecision(kPrecisions[state.matmul_precision < 3 ? state.matmul_precision : 0]);
  context.setUserEnabledMkldnn((state.backend_flags & kMkldnnEnabled) != 0);
  context.setSDPUseFlash((state.sdp_flags & kFlash) != 0);
  context.setSDPUseMemEfficient((state.sdp_flags & kMemoryEfficient) != 0);
  context.setSDPUseMath((state.sdp_flags & kMath) != 0);
  context.setSDPUseCuDNN((state.sdp_flags & kCudnn) != 0);
  context.setSDPUseOverrideable((state.sdp_flags & kOverrideable) != 0);
}

}  // namespace

void Contexts::define(uint32_t context, const ContextState& state) {
  if (context >= states_.size()) states_.resize(context + 1);
  states_[context] = state;
  if (context == current_) current_ = kNone;
}

void Contexts::change(uint32_t context) {
  runtime_.drain();
  current_ = kNone;
  ApplyCommon(*states_[context]);
  runtime_.apply_context(*states_[context]);
  current_ = context;
}

}  // namespace flagos::torch_host
