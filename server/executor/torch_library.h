// SPDX-License-Identifier: Apache-2.0
// Loading libtorch into an executor, which is not linked to it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace flagos::executor {

// Loads a library with its symbols for all that is loaded later. The error says why it cannot be loaded.
absl::Status LoadGlobally(const std::string& path);

// The versions for a message: "2.12, 2.13".
std::string Listed(const std::vector<std::string>& versions);

// Whether a version is one of `versions`, where "2.13" stands for all its patches and "2.13.0" for all its builds, as
// 2.13.0+cpu. None: any.
bool AcceptsVersion(const std::vector<std::string>& versions, const std::string& version);

// Loads libc10.so and libtorch_cpu.so of `folder`, and returns the version that they say they are ("2.13.0"; empty
// where they are too old to say). Refuses versions that AcceptsVersion() does not accept. `wanted_by` names who wants
// it, for the error. REQUIRES !folder.empty()
absl::StatusOr<std::string> LoadTorch(const std::string& folder, const std::vector<std::string>& versions,
                                      const std::string& wanted_by);

}  // namespace flagos::executor
