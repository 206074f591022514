// SPDX-License-Identifier: Apache-2.0
// Structured logs: one line an event, JSON for machines or logfmt for people. Thread safe. A log never blocks or stops
// its program: lines that a full disk or a full pipe does not take are dropped, counted, and the count is told later.
//
//   log::Info("session started", {{"session", "s1"}, {"pid", 4711}});
//   {"time":"2024-01-31T12:00:00.123Z","level":"info","msg":"session started","session":"s1","pid":4711}
//   time=2024-01-31T12:00:00.123Z level=info msg="session started" session=s1 pid=4711
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"

namespace flagos::log {

enum class Level { kDebug, kInfo, kWarn, kError };
enum class Format { kText, kJson };

std::optional<Level> ParseLevel(std::string_view text);    // debug, info, warn, error
std::optional<Format> ParseFormat(std::string_view text);  // text, json

struct Options {
  Level level = Level::kInfo;
  Format format = Format::kText;
  std::string file;  // appended to; empty: standard error
};

// Until this is called lines of level info and above go to standard error as text.
absl::Status Start(const Options& options);

// Opens the log file anew, by its name: after it was moved away. Where the log has no file, takes standard error as it
// is now. Where the file cannot be opened the log stays where it is.
absl::Status Reopen();

// Lines that were dropped since Start().
uint64_t Dropped();

struct Field {
  using Value = std::variant<int64_t, uint64_t, double, bool, std::string_view>;
  template <std::signed_integral T>
  Field(std::string_view key, T number) : name(key), value(static_cast<int64_t>(number)) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Field(std::string_view key, T number)
      : name(key), value(static_cast<uint64_t>(number)) {}
  Field(std::string_view key, double number) : name(key), value(number) {}
  Field(std::string_view key, bool flag) : name(key), value(flag) {}
  Field(std::string_view key, std::string_view text) : name(key), value(text) {}
  Field(std::string_view key, const std::string& text) : name(key), value(std::string_view(text)) {}
  Field(std::string_view key, const char* text) : name(key), value(std::string_view(text)) {}

  std::string_view name;
  Value value;
};
using Fields = std::initializer_list<Field>;

void Write(Level level, std::string_view message, Fields fields = {});
inline void Debug(std::string_view message, Fields fields = {}) { Write(Level::kDebug, message, fields); }
inline void Info(std::string_view message, Fields fields = {}) { Write(Level::kInfo, message, fields); }
inline void Warn(std::string_view message, Fields fields = {}) { Write(Level::kWarn, message, fields); }
inline void Error(std::string_view message, Fields fields = {}) { Write(Level::kError, message, fields); }

// A line that another program of ours wrote as JSON, in this log's format, at its own level and with `extra` fields; a
// line that is nothing of the kind is a message of level info.
void Relay(std::string_view line, Fields extra);

// The line that Write() would write, without its end. Texts that make it too long for the log lose their middle.
// `time_ms`: Unix milliseconds.
std::string FormatLine(Format format, int64_t time_ms, Level level, std::string_view message, Fields fields);

}  // namespace flagos::log
