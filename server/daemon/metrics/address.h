// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace flagos::daemon {

struct MetricsAddress {
  std::string host;  // a numeric address
  uint16_t port = 0;
};

// "127.0.0.1:9466" or "[::1]:9466"; nullopt: it is none. Names of hosts are not looked up.
std::optional<MetricsAddress> ParseMetricsAddress(const std::string& text);

}  // namespace flagos::daemon
