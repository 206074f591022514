// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/warnings.h"

#include <string>
#include <variant>

namespace flagos::torch_host {

namespace {

// What PyTorch says of making any sparse tensor, it has said in the client too.
bool IsClientsOwn(const std::string& text) {
  return text.starts_with("Sparse CSR tensor support is in beta") || text.starts_with("Sparse invariant checks are");
}

}  // namespace

void WarningCollector::process(const c10::Warning& warning) {
  if (IsClientsOwn(warning.msg())) return;
  const bool deprecation = std::holds_alternative<c10::Warning::DeprecationWarning>(warning.type());
  warnings_.push_back({deprecation ? WarningKind::kDeprecation : WarningKind::kUser, warning.msg()});
}

}  // namespace flagos::torch_host
