// SPDX-License-Identifier: Apache-2.0
// Where the devices are: FLAGOS_ENDPOINT and what goes with it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "proto/wire/error.h"

namespace flagos::client {

inline constexpr const char* kSystemSocket = "/run/flagos/flagosd.sock";

struct Endpoint {
  enum class Kind { kUnix, kEmbedded };
  Kind kind = Kind::kEmbedded;
  std::string path;                 // kUnix: of flagosd's socket
  uint32_t devices = 1;             // kEmbedded: how many to present (FLAGOS_DEVICES)
  std::string vendor;               // kEmbedded: FLAGOS_VENDOR, "cpu" if unset
  std::array<uint8_t, 32> token{};  // of a lease opened before; zeros: none

  // As a user would write it.
  std::string text() const { return kind == Kind::kUnix ? "unix://" + path : "embedded"; }
};

// Reads the environment:
//   FLAGOS_ENDPOINT  unset or empty: the system socket where it exists, else embedded; unix:///path; embedded
//   FLAGOS_TOKEN     64 hexadecimal digits; unset: what the file `token` beside the socket holds, if there is one
//   FLAGOS_DEVICES   1 to kMaxDevices; FLAGOS_VENDOR a name of letters, digits, '_' and '-'; both embedded only
// Anything else is a kValue error that lists what is accepted.
Result<Endpoint> ReadEndpoint();

}  // namespace flagos::client
