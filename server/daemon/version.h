// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace flagos::daemon {

#ifndef FLAGOS_VERSION
#error "the build says the version"
#endif
inline constexpr const char* kVersion = FLAGOS_VERSION;

}  // namespace flagos::daemon
