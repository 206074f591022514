// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/metrics/address.h"

#include <arpa/inet.h>

#include <charconv>

namespace flagos::daemon {
namespace {

bool IsAddress(int family, const std::string& host) {
  in6_addr address{};  // the larger one
  return ::inet_pton(family, host.c_str(), &address) == 1;
}

}  // namespace

std::optional<MetricsAddress> ParseMetricsAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  MetricsAddress result{text.substr(0, colon)};
  const bool bracketed = result.host.size() > 2 && result.host.front() == '[' && result.host.back() == ']';
  if (bracketed) result.host = result.host.substr(1, result.host.size() - 2);
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data() + colon + 1, end, result.port);
  const bool good = error == std::errc() && read == end && result.port != 0;
  if (!good || !IsAddress(bracketed ? AF_INET6 : AF_INET, result.host)) return std::nullopt;
  return result;
}

}  // namespace flagos::daemon
