// SPDX-License-Identifier: Apache-2.0
#include "server/common/strings.h"

#include "proto/wire/bytes.h"

namespace flagos {
namespace {

// Bytes of the code point that starts at `at`; 0 where none does.
size_t CodePointBytes(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t size = lead < 0x80                   ? 1
                      : lead >= 0xc2 && lead < 0xe0 ? 2
                      : lead >= 0xe0 && lead < 0xf0 ? 3
                      : lead >= 0xf0 && lead < 0xf5 ? 4
                                                    : 0;
  if (size == 0 || at + size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!IsUtf8Continuation(text[at + i])) return 0;
  }
  return size;
}

// C0 controls, DEL, and the C1 controls, which some terminals obey in their two-byte form.
bool IsControl(std::string_view code_point) {
  const auto first = static_cast<unsigned char>(code_point[0]);
  if (code_point.size() == 1) return first < 0x20 || first == 0x7f;
  return code_point.size() == 2 && first == 0xc2 && static_cast<unsigned char>(code_point[1]) < 0xa0;
}

std::string Replaced(std::string_view text, bool controls) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t size = CodePointBytes(text, at);
    if (size == 0 || (controls && IsControl(text.substr(at, size)))) {
      out += '?';
      at += size == 0 ? 1 : size;
    } else {
      out += text.substr(at, size);
      at += size;
    }
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Replaced(text, true); }

std::string ValidUtf8(std::string_view text) { return Replaced(text, false); }

std::string Shorten(std::string_view text, size_t limit) {
  constexpr std::string_view kGap = " ... ";
  if (text.size() <= limit) return std::string(text);
  const std::string_view head = CutText(text, limit / 3);
  size_t tail = text.size() - (limit - limit / 3 - kGap.size());
  while (tail < text.size() && IsUtf8Continuation(text[tail])) ++tail;
  return Cat(head, kGap, text.substr(tail));
}

}  // namespace flagos
