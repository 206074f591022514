// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/precision.h"

#include <ATen/Context.h>

namespace flagos::cuda {
namespace {

enum BackendFlag : uint8_t { kTf32Matmul = 1, kTf32Conv = 2, kCudnn = 4, kBenchmark = 8, kDeterministic = 16 };
enum ReducedFlag : uint8_t { kHalfReduction = 1, kBFloat16Reduction = 2, kHalfAccumulation = 4 };

}  // namespace

void ApplyPrecision(const ContextState& state) {
  at::Context& context = at::globalContext();
  const auto backend = [&](BackendFlag flag) { return (state.backend_flags & flag) != 0; };
  const auto reduced = [&](ReducedFlag flag) { return (state.reduced_precision_flags & flag) != 0; };
  context.setAllowTF32CuBLAS(backend(kTf32Matmul));
  context.setAllowTF32CuDNN(backend(kTf32Conv));
  context.setUserEnabledCuDNN(backend(kCudnn));
  context.setBenchmarkCuDNN(backend(kBenchmark));
  context.setDeterministicCuDNN(backend(kDeterministic));
  context.setAllowFP16ReductionCuBLAS(reduced(kHalfReduction));
  context.setAllowBF16ReductionCuBLAS(reduced(kBFloat16Reduction));
  context.setAllowFP16AccumulationCuBLAS(reduced(kHalfAccumulation));
}

}  // namespace flagos::cuda
