// SPDX-License-Identifier: Apache-2.0
// Convolutions cross whole: PyTorch picks the algorithm in the executor, where the device is.
#include "client/forward/forwarding_kernel.h"
#include "client/forward/local.h"

namespace flagos::client {
namespace {

// What PyTorch calls of a device like this where somebody calls aten::_convolution directly: takes what convolution
// takes.
void ConvolutionOverrideable(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  static Operator& convolution = Operator::Find("aten::convolution");
  Call(convolution, *stack);
}

// The arguments of convolution_backward, but for the sizes of the bias: those of the output's channels.
void ConvolutionBackwardOverrideable(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  static Operator& backward = Operator::Find("aten::convolution_backward");
  const size_t first = stack->size() - handle.schema().arguments().size();
  const int64_t channels = (*stack)[first].toTensor().size(1);
  stack->insert(stack->begin() + static_cast<ptrdiff_t>(first) + 3, c10::IValue(c10::List<int64_t>({channels})));
  Call(backward, *stack);
}

}  // namespace

void RegisterConvolution(torch::Library& library) {
  Forward(library, "convolution");
  Forward(library, "convolution_backward");
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&ConvolutionOverrideable>());
  library.impl("convolution_backward_overrideable",
               torch::CppFunction::makeFromBoxedFunction<&ConvolutionBackwardOverrideable>());
}

}  // namespace flagos::client
