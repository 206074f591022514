// SPDX-License-Identifier: Apache-2.0
// Bytes for tests of the codec.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/bytes.h"

namespace flagos::testing {

// Two digits a byte, no spaces.
inline std::string Hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

template <class Record>
std::string HexOf(const Record& record) {
  return Hex(std::as_bytes(std::span(&record, 1)));
}

// The bytes of plain values, one after the other.
template <class... Values>
std::vector<std::byte> Bytes(Values... values) {
  ByteWriter out;
  (out.put(values), ...);
  return {out.bytes().begin(), out.bytes().end()};
}

template <class... Parts>
std::vector<std::byte> Join(const Parts&... parts) {
  std::vector<std::byte> out;
  (out.insert(out.end(), parts.begin(), parts.end()), ...);
  return out;
}

}  // namespace flagos::testing
