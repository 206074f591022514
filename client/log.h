// SPDX-License-Identifier: Apache-2.0
// FLAGOS_LOG: lines on standard error about what the client does, by kinds that its comma-separated words choose.
#pragma once

#include <cstdint>

namespace flagos::client::log {

enum class Word : uint8_t {
  kDispatch = 1,  // every call
  kSync = 2,      // every call that waited, and why
  kFallback = 4,  // every call that ran on the client's CPU
  kSession = 8    // attaching, and the loss of the device
};

// The words of FLAGOS_LOG, read once; says on standard error where one is unknown.
uint8_t Words();

inline bool Any() { return Words() != 0; }
inline bool Has(Word word) { return (Words() & static_cast<uint8_t>(word)) != 0; }

// Writes "flagos: ", the text and a new line, in one piece.
[[gnu::format(printf, 1, 2)]] void Line(const char* format, ...);

}  // namespace flagos::client::log
