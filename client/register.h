// SPDX-License-Identifier: Apache-2.0
// What makes PyTorch know the device. Nothing of it happens when the library is loaded.
#pragma once

namespace flagos::client {

// Names PrivateUse1 "flagos" and registers everything below and the forwarding kernels. Only the first call acts.
// Throws where PrivateUse1 belongs to another device in this process. Reaches for no daemon.
void RegisterDevice();

void RegisterGuard();
void RegisterHooks();
void RegisterAllocators();
void RegisterAutocast();

}  // namespace flagos::client
