// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/metrics/exposition.h"

#include <array>
#include <charconv>
#include <utility>

#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

void AppendEscaped(std::string& to, std::string_view value) {
  for (const char c : ValidUtf8(value)) {
    switch (c) {
      case '\\': to += "\\\\"; break;
      case '"': to += "\\\""; break;
      case '\n': to += "\\n"; break;
      default: to += c;
    }
  }
}

// The shortest text that reads back as the same number.
void AppendNumber(std::string& to, double value) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  static_cast<void>(error);  // 32 characters hold every double
  to.append(digits.data(), end);
}

}  // namespace

void Exposition::family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  head_ = Cat("# HELP ", name, " ", help, "\n# TYPE ", name, type == MetricType::kCounter ? " counter\n" : " gauge\n");
}

void Exposition::sample(Labels labels, double value) {
  if (series_ == max_series_) {
    ++dropped_;
    return;
  }
  ++series_;
  text_ += std::exchange(head_, {});
  text_ += name_;
  char separator = '{';
  for (const Label& label : labels) {
    text_ += separator;
    text_ += label.name;
    text_ += "=\"";
    AppendEscaped(text_, label.value);
    text_ += '"';
    separator = ',';
  }
  if (labels.size() != 0) text_ += '}';
  text_ += ' ';
  AppendNumber(text_, value);
  text_ += '\n';
}

}  // namespace flagos::daemon
