// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/audit/record.h"

#include <time.h>

#include <charconv>
#include <cstdio>

#include "server/common/sha256.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kHashDigits = 64;
constexpr size_t kLongestText = 1024;  // bytes of a text; longer ones lose their middle
constexpr std::string_view kStart = R"({"sequence":)";
constexpr std::string_view kPrevious = R"(,"previous":")";
constexpr std::string_view kHash = R"(,"hash":")";
constexpr std::string_view kEnd = R"("})";

std::string Rfc3339(int64_t unix_microseconds) {
  const auto seconds = static_cast<time_t>(unix_microseconds / 1'000'000);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ", utc.tm_year + 1900, utc.tm_mon + 1,
                utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<long>(unix_microseconds % 1'000'000));
  return text;
}

std::string Text(const std::string& text) { return Shorten(ValidUtf8(text), kLongestText); }

Json Bounded(const Json& value) {
  if (value.is_string()) return Text(value.get<std::string>());
  if (!value.is_structured()) return value;
  Json bounded = value;
  for (Json& entry : bounded) entry = Bounded(entry);
  return bounded;
}

bool IsHash(std::string_view text) {
  return text.size() == kHashDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Takes `digits` hexadecimal digits and what encloses them off the end of `line`.
bool TakeHash(std::string_view& line, std::string_view before, std::string_view after, std::string_view& hash) {
  const size_t size = before.size() + kHashDigits + after.size();
  if (line.size() < size) return false;
  const std::string_view taken = line.substr(line.size() - size);
  if (!taken.starts_with(before) || !taken.ends_with(after)) return false;
  hash = taken.substr(before.size(), kHashDigits);
  line.remove_suffix(size);
  return IsHash(hash);
}

}  // namespace

std::string FormatAuditRecord(const AuditRecord& record, const AuditLink& last, int64_t unix_microseconds) {
  Json line = {{"sequence", last.sequence + 1},
               {"time", Rfc3339(unix_microseconds)},
               {"operation", record.operation},
               {"actor", {{"uid", record.actor.uid}, {"user", Text(record.actor.user)}}},
               {"verb", record.verb},
               {"target", Text(record.target)},
               {"before", Bounded(record.before)},
               {"after", Bounded(record.after)},
               {"reason", Text(record.reason)},
               {"result", Text(record.result)},
               {"previous", last.hash}};
  if (record.actor.pid != 0) line["actor"]["pid"] = record.actor.pid;
  std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string hash = Sha256Hex(text);
  text.pop_back();
  return Cat(text, kHash, hash, kEnd);
}

std::optional<AuditLineLink> ReadAuditLink(std::string_view line) {
  AuditLineLink link;
  std::string_view rest = line;
  if (!line.starts_with(kStart) || !TakeHash(rest, kHash, kEnd, link.hash)) return std::nullopt;
  const std::string hashed = Cat(rest, "}");
  if (!TakeHash(rest, kPrevious, "\"", link.previous)) return std::nullopt;
  rest.remove_prefix(kStart.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), link.sequence);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != ',') return std::nullopt;
  link.intact = Sha256Hex(hashed) == link.hash;
  return link;
}

}  // namespace flagos::daemon
