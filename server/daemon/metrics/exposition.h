// SPDX-License-Identifier: Apache-2.0
// Prometheus' text format, version 0.0.4.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace flagos::daemon {

struct Label {
  std::string_view name;
  std::string_view value;
};
using Labels = std::initializer_list<Label>;

enum class MetricType { kGauge, kCounter };

// Families one after the other, each with its samples. A family without samples leaves no trace.
class Exposition {
 public:
  // At most so many samples; more are dropped and counted, for a scraper's memory is finite too.
  explicit Exposition(size_t max_series) : max_series_(max_series) {}

  // The names are the caller's to get right: flagos_ first, base units, counters end in _total.
  void family(std::string_view name, MetricType type, std::string_view help);
  // REQUIRES family(). Values of labels may be any text.
  void sample(Labels labels, double value);

  size_t series() const { return series_; }
  size_t dropped() const { return dropped_; }
  const std::string& text() const { return text_; }

 private:
  const size_t max_series_;
  size_t series_ = 0, dropped_ = 0;
  std::string name_, head_;  // of the family; the head until its first sample
  std::string text_;
};

}  // namespace flagos::daemon
