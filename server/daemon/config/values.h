// SPDX-License-Identifier: Apache-2.0
// The types that configuration keys have: how each is read from a file, and how it is shown.
#pragma once

#include <toml++/toml.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/shm/arbiter_page.h"
#include "server/common/log.h"
#include "server/daemon/config/config.h"
#include "server/daemon/config/memory_limit.h"

namespace flagos::daemon {

// An error says what was expected, and leaves `to` as it was.
absl::Status ReadValue(const toml::node& value, std::string& to);
absl::Status ReadValue(const toml::node& value, uint32_t& to);
absl::Status ReadValue(const toml::node& value, uint64_t& to);  // bytes
absl::Status ReadValue(const toml::node& value, std::chrono::nanoseconds& to);
absl::Status ReadValue(const toml::node& value, log::Format& to);
absl::Status ReadValue(const toml::node& value, log::Level& to);
absl::Status ReadValue(const toml::node& value, SpawnerKind& to);
absl::Status ReadValue(const toml::node& value, std::vector<uint32_t>& to);
absl::Status ReadValue(const toml::node& value, MemoryLimit& to);
absl::Status ReadValue(const toml::node& value, ComputeMode& to);

// As a file would have it, without quotes. Two values are equal where these are.
std::string ShowValue(const std::string& value);
std::string ShowValue(uint32_t value);
std::string ShowValue(uint64_t value);
std::string ShowValue(std::chrono::nanoseconds value);
std::string ShowValue(log::Format value);
std::string ShowValue(log::Level value);
std::string ShowValue(SpawnerKind value);
std::string ShowValue(const std::vector<uint32_t>& value);
std::string ShowValue(const MemoryLimit& value);
std::string ShowValue(ComputeMode value);

// InvalidArgument: "expected ...".
absl::Status Expected(std::string_view what);

}  // namespace flagos::daemon
