// SPDX-License-Identifier: Apache-2.0
// The part of TorchBackend that is about kernel libraries; none of it is on the way of a call.
#include <string>
#include <utility>

#include "proto/routing/check.h"
#include "vendors/torch/backend.h"
#include "vendors/torch/operator.h"

namespace flagos::torch_host {

Error TorchBackend::route(Operator& op, const std::string& asked) {
  if (!kernels_) {
    const bool native = asked.empty() || asked == kNativeKernels;
    return native ? Error::Ok() : NoSuchLibrary(op.name, asked, {});
  }
  auto chosen = kernels_->choose(op.name, asked);
  if (!chosen.ok()) return chosen.error();
  op.route = std::move(chosen).value();
  return Error::Ok();
}

std::vector<KernelLibraryInfo> TorchBackend::kernel_libraries() {
  return kernels_ ? kernels_->libraries() : std::vector<KernelLibraryInfo>();
}

std::string TorchBackend::kernel_of(uint32_t signature) {
  if (signature >= signatures_.size() || !signatures_[signature].value) return {};
  const PreparedCall& call = *signatures_[signature].value;
  return call.route != nullptr ? call.route->library : std::string(kNativeKernels);
}

std::vector<KernelFigures> TorchBackend::kernel_figures() {
  runtime_->drain();  // or calls that are still queued would be missing
  std::vector<KernelFigures> figures;
  for (uint32_t op = 0; op < operators_.size(); ++op) {
    if (!operators_[op].value || !operators_[op].value->route) continue;
    const KernelRoute& route = *operators_[op].value->route;
    figures.push_back({op, route.library, route.calls.load(std::memory_order_relaxed)});
  }
  return figures;
}

}  // namespace flagos::torch_host
