// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/monitor/uuid.h"

namespace flagos::cuda {
namespace {

std::optional<uint8_t> Digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::optional<DeviceUuid> ParseUuid(std::string_view text) {
  constexpr std::string_view kPrefix = "GPU-", kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  if (text.size() != kShape.size()) return std::nullopt;
  DeviceUuid uuid{};
  size_t digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (kShape[i] == '-' && text[i] == '-') continue;
    const auto digit = Digit(text[i]);
    if (kShape[i] == '-' || !digit) return std::nullopt;
    uuid[digits / 2] = static_cast<uint8_t>(uuid[digits / 2] << 4 | *digit);
    ++digits;
  }
  return uuid;
}

}  // namespace flagos::cuda
