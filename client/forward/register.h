// SPDX-License-Identifier: Apache-2.0
// Entry points of forwarding: what is registered with PyTorch's dispatcher, and when.
#pragma once

#include <span>
#include <string>

namespace flagos::client {

// By RegisterDevice(), once: the operators that the client computes by itself (factories, views, copies) and
// the catch-all for operators unknown so far. Attaches to nothing.
void RegisterForwarding();

// When a session is opened; only the first call in a process does something. Forwards each of the executor's operators
// ("aten::add.Tensor"), but for those that PyTorch here does not know, that are registered already, and composite
// ones, whose decompositions stay PyTorch's.
void RegisterOperators(std::span<const std::string> names);

}  // namespace flagos::client
