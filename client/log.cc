// SPDX-License-Identifier: Apache-2.0
#include "client/log.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace flagos::client::log {
namespace {

constexpr std::array<std::pair<std::string_view, Word>, 4> kWords = {
    {{"dispatch", Word::kDispatch}, {"sync", Word::kSync}, {"fallback", Word::kFallback}, {"session", Word::kSession}}};

uint8_t Read(std::string_view rest) {
  uint8_t words = 0;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    bool known = word.empty();
    for (const auto& [name, bit] : kWords) {
      if (word != name) continue;
      words |= static_cast<uint8_t>(bit);
      known = true;
    }
    if (!known) {
      Line("FLAGOS_LOG has the word '%s', which means nothing; there are dispatch, sync, fallback and session",
           std::string(word).c_str());
    }
  }
  return words;
}

}  // namespace

uint8_t Words() {
  static const uint8_t words = [] {
    const char* const text = std::getenv("FLAGOS_LOG");
    return text != nullptr ? Read(text) : uint8_t{0};
  }();
  return words;
}

void Line(const char* format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  std::fprintf(stderr, "flagos: %s\n", text);
}

}  // namespace flagos::client::log
