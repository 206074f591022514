// SPDX-License-Identifier: Apache-2.0
#include "server/common/log.h"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "server/common/log_sink.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::log {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLevelNames[] = {"debug", "info", "warn", "error"};
constexpr spdlog::level::level_enum kSpdlogLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                       spdlog::level::err};

struct Output {
  std::string file;  // empty: standard error
  std::shared_ptr<DroppingSink> sink;
  std::shared_ptr<spdlog::logger> logger;
  Format format = Format::kText;
};

int64_t NowMilliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

UniqueFd CopyOfStandardError() { return UniqueFd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)); }

std::shared_ptr<Output> MakeOutput(UniqueFd fd, const Options& options) {
  auto output = std::make_shared<Output>();
  output->file = options.file;
  output->format = options.format;
  output->sink = std::make_shared<DroppingSink>(std::move(fd), [format = options.format](uint64_t count) {
    return FormatLine(format, NowMilliseconds(), Level::kWarn, "log lines were dropped: the log did not take them",
                      {{"count", count}});
  });
  output->logger = std::make_shared<spdlog::logger>("flagos", output->sink);
  output->logger->set_level(kSpdlogLevels[static_cast<int>(options.level)]);
  return output;
}

absl::StatusOr<UniqueFd> OpenFile(const std::string& file) {
  UniqueFd fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640));
  if (fd) return fd;
  return SystemError(errno, "cannot open the log file " + file,
                     "choose a file in a folder that this user may write to (log_file)");
}

std::mutex output_mutex;

// REQUIRES output_mutex. Never destroyed: threads of a library may log until the process is gone.
std::shared_ptr<Output>& OutputSlot() {
  static auto* const slot = new std::shared_ptr<Output>(MakeOutput(CopyOfStandardError(), Options{}));
  return *slot;
}

std::shared_ptr<Output> CurrentOutput() {
  const std::lock_guard lock(output_mutex);
  return OutputSlot();
}

std::string Timestamp(int64_t time_ms) {
  const time_t seconds = time_ms / 1000;
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[80];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, static_cast<int>(time_ms % 1000));
  return text;
}

Json ToJson(Fields fields) {
  Json object = Json::object();
  for (const Field& field : fields) {
    object[std::string(field.name)] = std::visit([](const auto& value) { return Json(value); }, field.value);
  }
  return object;
}

std::string Dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Quoted where logfmt needs it: the rules of JSON strings serve.
std::string LogfmtValue(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    bool plain = !text.empty();
    for (const char c : text) plain = plain && c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
    if (plain) return text;
  }
  // A quote within a bare value would end it for whoever reads the line.
  const std::string text = Dump(value);
  return !value.is_string() && text.find('"') != std::string::npos ? Dump(text) : text;
}

// Names are ours, but for those of relayed lines: nothing in them may look like the end of a field or of a line.
std::string LogfmtKey(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return c <= ' ' || c >= 0x7f || c == '=' || c == '"' || c == '\\'; }, '_');
  return name;
}

std::string RenderWhole(Format format, int64_t time_ms, Level level, std::string_view message, const Json& fields) {
  const char* const level_name = kLevelNames[static_cast<int>(level)];
  if (format == Format::kJson) {
    Json line = {{"time", Timestamp(time_ms)}, {"level", level_name}, {"msg", message}};
    line.update(fields);
    return Dump(line);
  }
  std::string line = "time=" + Timestamp(time_ms) + " level=" + level_name + " msg=" + LogfmtValue(message);
  for (const auto& [name, value] : fields.items()) {
    line.append(" ").append(LogfmtKey(name)).append("=").append(LogfmtValue(value));
  }
  return line;
}

// A line that is longer than the log takes would lose its end, and JSON its form: the longest texts are shortened until
// it fits.
std::string Render(Format format, int64_t time_ms, Level level, std::string_view message, const Json& fields) {
  constexpr size_t kShortest = 64;
  std::string line = RenderWhole(format, time_ms, level, message, fields);
  if (line.size() <= kMaxLine) return line;
  std::string short_message(message);
  Json short_fields = fields;
  while (line.size() > kMaxLine) {
    std::string* longest = &short_message;
    for (Json& value : short_fields) {
      if (value.is_structured()) value = Dump(value);
      auto* const text = value.get_ptr<std::string*>();
      if (text != nullptr && text->size() > longest->size()) longest = text;
    }
    if (longest->size() > kShortest) {
      *longest = Shorten(*longest, longest->size() / 2);
    } else {
      short_fields = {{"fields_left_out", short_fields.size()}};  // hundreds of them
    }
    line = RenderWhole(format, time_ms, level, short_message, short_fields);
  }
  return line;
}

}  // namespace

std::optional<Level> ParseLevel(std::string_view text) {
  for (int i = 0; i < 4; ++i) {
    if (text == kLevelNames[i]) return static_cast<Level>(i);
  }
  return std::nullopt;
}

std::optional<Format> ParseFormat(std::string_view text) {
  if (text == "text") return Format::kText;
  if (text == "json") return Format::kJson;
  return std::nullopt;
}

absl::Status Start(const Options& options) {
  UniqueFd fd;
  if (options.file.empty()) {
    fd = CopyOfStandardError();
  } else {
    auto file = OpenFile(options.file);
    if (!file.ok()) return file.status();
    fd = *std::move(file);
  }
  auto output = MakeOutput(std::move(fd), options);
  const std::lock_guard lock(output_mutex);
  OutputSlot() = std::move(output);
  return absl::OkStatus();
}

absl::Status Reopen() {
  const auto output = CurrentOutput();
  if (output->file.empty()) {
    output->sink->write_to(CopyOfStandardError());
    return absl::OkStatus();
  }
  auto file = OpenFile(output->file);
  if (!file.ok()) return file.status();
  output->sink->write_to(*std::move(file));
  return absl::OkStatus();
}

uint64_t Dropped() { return CurrentOutput()->sink->dropped(); }

std::string FormatLine(Format format, int64_t time_ms, Level level, std::string_view message, Fields fields) {
  return Render(format, time_ms, level, message, ToJson(fields));
}

void Write(Level level, std::string_view message, Fields fields) {
  const auto output = CurrentOutput();
  const auto spdlog_level = kSpdlogLevels[static_cast<int>(level)];
  if (!output->logger->should_log(spdlog_level)) return;
  output->logger->log(spdlog_level, FormatLine(output->format, NowMilliseconds(), level, message, fields));
}

void Relay(std::string_view line, Fields extra) {
  Json parsed = Json::parse(line, nullptr, false);
  const auto text = [&](const char* key) {
    const auto found = parsed.is_object() ? parsed.find(key) : parsed.end();
    return found != parsed.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string message = text("msg");
  const auto level = ParseLevel(text("level"));
  if (message.empty() || !level) return Write(Level::kInfo, line, extra);
  const auto output = CurrentOutput();
  const auto spdlog_level = kSpdlogLevels[static_cast<int>(*level)];
  if (!output->logger->should_log(spdlog_level)) return;
  for (const char* key : {"time", "level", "msg"}) parsed.erase(key);
  parsed.update(ToJson(extra));
  output->logger->log(spdlog_level, Render(output->format, NowMilliseconds(), *level, message, parsed));
}

}  // namespace flagos::log
