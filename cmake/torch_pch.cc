// SPDX-License-Identifier: Apache-2.0
//
// Carries the precompiled torch headers that every library with TORCH shares; see torch.cmake.
