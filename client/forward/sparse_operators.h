// SPDX-License-Identifier: Apache-2.0
// Operators on sparse tensors: those that only read or build their structure run here, the others in the executor.
#pragma once

namespace flagos::client {

// By RegisterDevice(), once: the operators of the client itself and the catch-alls. Attaches to nothing.
void RegisterSparse();

// When a session is opened: forwards whatever PyTorch has a kernel of its own for, on sparse tensors of the CPU. The
// others PyTorch composes of these on every device.
void ForwardSparse();

}  // namespace flagos::client
