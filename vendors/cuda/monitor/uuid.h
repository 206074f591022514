// SPDX-License-Identifier: Apache-2.0
// A GPU's UUID, which NVML writes as text and CUDA as bytes.
#pragma once

#include <optional>
#include <string_view>

#include "proto/wire/telemetry.h"

namespace flagos::cuda {

// "GPU-01234567-89ab-cdef-0123-456789abcdef"; nullopt for anything else.
std::optional<DeviceUuid> ParseUuid(std::string_view text);

}  // namespace flagos::cuda
