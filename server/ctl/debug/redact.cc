// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/debug/redact.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_replace.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

extern char** environ;

namespace flagos::ctl {
namespace {

constexpr std::string_view kRedacted = "[redacted]";
constexpr size_t kTokenDigits = 64;
constexpr size_t kShortestSecret = 6;
constexpr std::array<std::string_view, 6> kSecretNames = {"token",  "password", "passwd",
                                                          "secret", "api_key",  "credential"};

bool SaysSecret(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(std::string(name));
  return std::ranges::any_of(kSecretNames,
                             [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

bool IsNameCharacter(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

std::string WithoutTokens(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end - at >= kTokenDigits) {
      out += kRedacted;
    } else {
      end = std::max(end, at + 1);
      out.append(text, at, end - at);
    }
    at = end;
  }
  return out;
}

// NAME=VALUE and NAME: VALUE, also in quotes.
std::string WithoutValues(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    const std::string_view name = std::string_view(text).substr(at, end - at);
    if (name.empty()) {
      out.push_back(text[at++]);
      continue;
    }
    out += name;
    at = end;
    if (!SaysSecret(name)) continue;
    size_t value = at;
    while (value < text.size() && std::string_view("\"' =:").find(text[value]) != std::string_view::npos) ++value;
    if (std::string_view(text).substr(at, value - at).find_first_of("=:") == std::string_view::npos) continue;
    size_t last = value;
    while (last < text.size() && std::string_view(" \t\n\"',}").find(text[last]) == std::string_view::npos) ++last;
    out.append(text, at, value - at);
    if (last > value) out += kRedacted;
    at = last;
  }
  return out;
}

}  // namespace

std::string Redact(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (!secret.empty()) absl::StrReplaceAll({{absl::string_view(secret), absl::string_view("[redacted]")}}, &text);
  }
  return WithoutValues(WithoutTokens(text));
}

std::vector<std::string> SecretsOfEnvironment() {
  std::vector<std::string> secrets;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !SaysSecret(text.substr(0, equals))) continue;
    if (text.size() - equals - 1 >= kShortestSecret) secrets.emplace_back(text.substr(equals + 1));
  }
  return secrets;
}

}  // namespace flagos::ctl
