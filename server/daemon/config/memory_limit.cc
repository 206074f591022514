// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/memory_limit.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/common/strings.h"
#include "server/daemon/config/units.h"

namespace flagos::daemon {

uint64_t MemoryLimit::of(uint64_t device_memory) const {
  if (!limited()) return 0;
  const double part = static_cast<double>(device_memory) * percent / 100;
  return std::max<uint64_t>(bytes != 0 ? bytes : static_cast<uint64_t>(part), 1);
}

absl::StatusOr<MemoryLimit> ParseMemoryLimit(std::string_view text) {
  if (text == "none") return MemoryLimit{};
  const auto wrong = [&] {
    return absl::InvalidArgumentError(Cat(
        "\"", text,
        "\" is no limit of memory; write a size with a unit (\"4GiB\"), a part of each device (\"25%\") or \"none\""));
  };
  if (!text.ends_with("%")) {
    const auto bytes = ParseBytes(text);
    if (!bytes.ok() || *bytes == 0) return wrong();
    return MemoryLimit{.bytes = *bytes};
  }
  const std::string_view number = text.substr(0, text.size() - 1);
  double percent = 0;
  if (number.find_first_not_of("0123456789.") != std::string_view::npos ||
      !absl::SimpleAtod(std::string(number), &percent) || !(percent > 0 && percent <= 100)) {
    return wrong();
  }
  return MemoryLimit{.percent = percent};
}

std::string FormatMemoryLimit(const MemoryLimit& limit) {
  if (limit.bytes != 0) return FormatBytes(limit.bytes);
  return limit.percent != 0 ? absl::StrCat(limit.percent, "%") : "none";
}

}  // namespace flagos::daemon
