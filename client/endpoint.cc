// SPDX-License-Identifier: Apache-2.0
#include "client/endpoint.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "proto/wire/types.h"

namespace flagos::client {
namespace {

constexpr std::string_view kUnixScheme = "unix://";

std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

Error Refused(const char* variable, std::string_view value, const std::string& accepted) {
  return MakeError(ErrorCode::kValue,
                   std::string(variable) + "='" + std::string(value) + "' is not understood; " + accepted);
}

Error ReadAddress(Endpoint& endpoint) {
  const std::string_view value = Variable("FLAGOS_ENDPOINT");
  if (value.empty()) {
    if (::access(kSystemSocket, F_OK) != 0) return Error::Ok();
    endpoint.kind = Endpoint::Kind::kUnix;
    endpoint.path = kSystemSocket;
    return Error::Ok();
  }
  if (value == "embedded") return Error::Ok();
  if (value.starts_with(kUnixScheme) && value.size() > kUnixScheme.size() && value[kUnixScheme.size()] == '/') {
    endpoint.kind = Endpoint::Kind::kUnix;
    endpoint.path = value.substr(kUnixScheme.size());
    return Error::Ok();
  }
  return Refused("FLAGOS_ENDPOINT", value,
                 "accepted are: unset (the system's flagosd at " + std::string(kSystemSocket) +
                     " where there is one, else a private one), unix:///path/of/flagosd.sock, embedded");
}

// The folder that a container has mounted holds the socket and the token of its lease.
std::string TokenBeside(const Endpoint& endpoint, std::string& file) {
  std::string token;
  if (endpoint.kind != Endpoint::Kind::kUnix) return token;
  file = endpoint.path.substr(0, endpoint.path.rfind('/') + 1) + "token";
  std::ifstream in(file);
  std::getline(in, token);
  return token;
}

Error ReadToken(Endpoint& endpoint) {
  std::string name = "FLAGOS_TOKEN", value(Variable("FLAGOS_TOKEN"));
  if (value.empty()) value = TokenBeside(endpoint, name);
  if (value.empty()) return Error::Ok();
  const auto refused = [&] {
    return Refused(name.c_str(), value.substr(0, 4), "accepted are the 64 hexadecimal digits of a lease's token");
  };
  if (value.size() != 2 * endpoint.token.size()) return refused();
  for (size_t i = 0; i < endpoint.token.size(); ++i) {
    const char* const digits = value.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, endpoint.token[i], 16);
    if (error != std::errc() || end != digits + 2) return refused();
  }
  return Error::Ok();
}

Error ReadEmbedded(Endpoint& endpoint) {
  const std::string_view devices = Variable("FLAGOS_DEVICES");
  if (!devices.empty()) {
    const char* const end = devices.data() + devices.size();
    const auto [at, error] = std::from_chars(devices.data(), end, endpoint.devices);
    if (error != std::errc() || at != end || endpoint.devices < 1 || endpoint.devices > kMaxDevices) {
      return Refused("FLAGOS_DEVICES", devices,
                     "accepted is the number of devices to present, 1 to " + std::to_string(kMaxDevices));
    }
  }
  const std::string_view vendor = Variable("FLAGOS_VENDOR");
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (vendor.find_first_not_of(kAllowed) != std::string_view::npos) {
    return Refused("FLAGOS_VENDOR", vendor, "accepted is a vendor's name, such as cpu or null");
  }
  endpoint.vendor = vendor.empty() ? "cpu" : vendor;
  return Error::Ok();
}

}  // namespace

Result<Endpoint> ReadEndpoint() {
  Endpoint endpoint;
  if (Error error = ReadAddress(endpoint); !error.ok()) return error;
  if (Error error = ReadToken(endpoint); !error.ok()) return error;
  if (endpoint.kind == Endpoint::Kind::kEmbedded) {
    if (Error error = ReadEmbedded(endpoint); !error.ok()) return error;
  }
  return endpoint;
}

}  // namespace flagos::client
