// SPDX-License-Identifier: Apache-2.0
// Texts put together. The distribution's Abseil has a string_view of its own, which its StrCat takes and std's is not.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace flagos {

namespace internal {
inline void Append(std::string& to, std::string_view text) { to.append(text); }
inline void Append(std::string& to, std::integral auto number) { to.append(std::to_string(number)); }
}  // namespace internal

// Cat("[pool] warm = ", 3, ": too many")
template <class... Parts>
std::string Cat(const Parts&... parts) {
  std::string text;
  (internal::Append(text, parts), ...);
  return text;
}

// A byte of a UTF-8 text that does not start a character.
inline bool IsUtf8Continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Text of a peer, for a log, a table or a terminal: programs name themselves. Control characters, which could steer a
// terminal, and bytes that are no UTF-8 become '?'.
std::string Printable(std::string_view text);
// The text with '?' for each byte that is no UTF-8, which Protobuf and JSON refuse; controls and line ends stay.
std::string ValidUtf8(std::string_view text);
// The text where it has at most `limit` bytes, else its beginning and, longer, its end: what failed, and why. REQUIRES
// limit >= 32
std::string Shorten(std::string_view text, size_t limit);

inline std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

}  // namespace flagos
