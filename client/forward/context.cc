// SPDX-License-Identifier: Apache-2.0
#include "client/forward/context.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include "client/errors.h"
#include "client/forward/types.h"

namespace flagos::client {
namespace {

constexpr uint8_t Bits(std::initializer_list<bool> bits) {
  uint8_t value = 0;
  uint8_t bit = 1;
  for (const bool set : bits) {
    if (set) value |= bit;
    bit = static_cast<uint8_t>(bit << 1);
  }
  return value;
}

// Read at every call: a few nanoseconds.
void ReadCommon(const at::Context& context, ContextState& state) {
  state.default_dtype = static_cast<uint8_t>(ToWire(c10::get_default_dtype_as_scalartype()));
  state.deterministic_algorithms = context.deterministicAlgorithms();
  state.deterministic_warn_only = context.deterministicAlgorithmsWarnOnly();
  state.deterministic_fill = context.deterministicFillUninitializedMemory();
  state.warn_always = c10::WarningUtils::get_warnAlways();
}

// The legacy getter of the matmul precision throws where old and new settings were mixed; what the settings say then is
// told from the new ones.
uint8_t MatmulPrecision(const at::Context& context) {
  using at::Float32Backend, at::Float32Op, at::Float32Precision;
  if (context.float32Precision(Float32Backend::MKLDNN, Float32Op::MATMUL) == Float32Precision::BF16) return 2;
  return context.float32Precision(Float32Backend::CUDA, Float32Op::MATMUL) == Float32Precision::TF32 ? 1 : 0;
}

// Read where it matters: some hundred nanoseconds.
void ReadAll(const at::Context& context, ContextState& state) {
  using at::CuBLASReductionOption, at::Float32Backend, at::Float32Op, at::Float32Precision;
  state.matmul_precision = MatmulPrecision(context);
  state.backend_flags =
      Bits({context.float32Precision(Float32Backend::CUDA, Float32Op::MATMUL) == Float32Precision::TF32,
            context.float32Precision(Float32Backend::CUDA, Float32Op::CONV) != Float32Precision::IEEE,
            context.userEnabledCuDNN(), context.benchmarkCuDNN(), context.deterministicCuDNN(),
            context.userEnabledMkldnn()});
  state.sdp_flags =
      Bits({context.userEnabledFlashSDP(), context.userEnabledMemEfficientSDP(), context.userEnabledMathSDP(),
            context.userEnabledCuDNNSDP(), context.userEnabledOverrideableSDP()});
  const auto reduced = [](CuBLASReductionOption option) {
    return option == CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
  };
  state.reduced_precision_flags =
      Bits({reduced(context.allowFP16ReductionCuBLAS()), reduced(context.allowBF16ReductionCuBLAS()),
            context.allowFP16AccumulationCuBLAS()});
}

// The states that the session knows, by number. GUARDED_BY(Session::lock())
struct Defined {
  uint32_t generation = 0;
  std::vector<ContextState> states;
};

uint32_t NumberOf(Session& session, const ContextState& state) {
  static Defined& defined = *new Defined;
  const std::lock_guard lock(session.lock());
  if (defined.generation != session.generation()) defined = {session.generation(), {}};
  for (uint32_t number = 0; number < defined.states.size(); ++number) {
    if (defined.states[number] == state) return number;
  }
  const auto number = static_cast<uint32_t>(defined.states.size());
  if (number >= kMaxContexts) {
    Throw(MakeError(ErrorCode::kOutOfRange,
                    "flagos: this process has used more combinations of PyTorch's global settings (default dtype, "
                    "deterministic algorithms, precision and backend flags) than a session can name; restart it"));
  }
  session.put(MakeHeader(RecordKind::kDefineContext, number), std::as_bytes(std::span(&state, 1)));
  defined.states.push_back(state);
  return number;
}

struct Seen {
  uint32_t generation = 0;  // 0: nothing yet
  uint32_t number = 0;
  ContextState state{};
};
thread_local constinit Seen seen;

}  // namespace

uint32_t CurrentContext(Session& session, bool all) {
  const at::Context& context = at::globalContext();
  Seen& last = seen;
  const bool first = last.generation != session.generation();
  ContextState state = last.state;
  ReadCommon(context, state);
  if (all || first) [[unlikely]]
    ReadAll(context, state);
  if (!first && std::memcmp(&state, &last.state, sizeof state) == 0) [[likely]]
    return last.number;
  last = {session.generation(), NumberOf(session, state), state};
  return last.number;
}

}  // namespace flagos::client
