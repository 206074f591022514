// SPDX-License-Identifier: Apache-2.0
// The Container Device Interface: a file by which docker, podman and containerd know leases as devices,
// `--device flagos.io/device=l1`. https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md, version
// 0.6.0.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"

namespace flagos::daemon {

// The specification: for each lease a mount of its folder (`leases`: name to path) at /run/flagos, no device node.
std::string CdiSpecification(const std::map<std::string, std::string>& leases);

// Replaces the file as a whole, or removes it where there is no lease: a specification has at least one device.
absl::Status WriteCdi(const std::string& file, const std::map<std::string, std::string>& leases);

}  // namespace flagos::daemon
