// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/top/model.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <utility>

#include "server/ctl/message_json.h"
#include "server/ctl/render.h"
#include "server/ctl/session_row.h"
#include "server/ctl/text.h"

namespace flagos::ctl {
namespace {

constexpr size_t kMostDevices = 8;    // rows of the table of devices
constexpr size_t kLongestText = 300;  // bytes that can be typed; flagosd takes no longer reasons
constexpr const char* kKeys = "s sort  r reverse  f filter  d device  p pause  k kill  ? help  q quit";
constexpr const char* kHelp[] = {
    "s        order by the next column",
    "r        the other way round",
    "f        show sessions only whose id, owner, state or program contains a text",
    "d        show sessions of the next device only, then of all again",
    "up, down choose a session",
    "k        end the chosen session; asks for the reason, which its job is told",
    "p        hold what is shown, and go on",
    "q        quit",
    "",
    "BUSY is the share of the time in which a session's executor was busy. Any key goes back.",
};

// Cut to so many columns.
std::string Fit(std::string_view text, size_t width) {
  std::string fitted;
  size_t columns = 0;
  for (const char c : text) {
    if (!IsUtf8Continuation(c) && ++columns > width) break;
    fitted.push_back(c);
  }
  return fitted;
}

std::vector<std::string> TableOf(const Schema& schema, const std::vector<Json>& rows, Units units) {
  View view;
  view.units = units;
  std::vector<std::string> lines = absl::StrSplit(RenderTable(schema, schema.columns, rows, view), '\n');
  lines.pop_back();  // behind the last line's end
  return lines;
}

bool Contains(const Json& row, const std::string& text) {
  const std::string wanted = absl::AsciiStrToLower(text);
  return std::ranges::any_of(std::vector{"id", "owner", "state", "program"}, [&](const char* field) {
    const Json& value = FindField(row, field);
    return value.is_string() && absl::AsciiStrToLower(value.get<std::string>()).find(wanted) != std::string::npos;
  });
}

}  // namespace

const Schema& TopSessionSchema() {
  static const Schema schema = {
      .kind = "Session",
      .fields = {{"busy_ratio", Unit::kRatio},
                 {"memory_used", Unit::kBytes},
                 {"memory_quota", Unit::kBytes},
                 {"device_time", Unit::kSeconds},
                 {"queue_bytes", Unit::kBytes},
                 {"idle", Unit::kSeconds},
                 {"age", Unit::kSeconds}},
      .columns = {{"SID", {"id"}},
                  {"OWNER", {"owner"}},
                  {"DEV", {"devices"}},
                  {"STATE", {"state"}},
                  {"BUSY", {"busy_ratio"}},
                  {"MEM/QUOTA", {"memory_used", "memory_quota"}},
                  {"DEV-TIME", {"device_time"}},
                  {"QDEPTH", {"queue_bytes"}},
                  {"IDLE", {"idle"}},
                  {"AGE", {"age"}},
                  {"PROGRAM", {"program"}}},
  };
  return schema;
}

const Schema& TopDeviceSchema() {
  static const Schema schema = {
      .kind = "Device",
      .fields = {{"index", Unit::kCount},
                 {"memory_used", Unit::kBytes},
                 {"memory_total", Unit::kBytes},
                 {"busy_ratio", Unit::kRatio},
                 {"telemetry.utilisation", Unit::kRatio},
                 {"telemetry.temperature", Unit::kCelsius},
                 {"telemetry.power", Unit::kWatts},
                 {"telemetry.power_limit", Unit::kWatts},
                 {"sessions", Unit::kCount}},
      .columns = {{"DEV", {"index"}},
                  {"MODEL", {"name"}},
                  {"HEALTH", {"health"}},
                  {"COMPUTE%", {"busy_ratio"}},
                  {"MEM-USED/TOTAL", {"memory_used", "memory_total"}},
                  {"UTIL", {"telemetry.utilisation"}},
                  {"TEMP", {"telemetry.temperature"}},
                  {"POWER", {"telemetry.power", "telemetry.power_limit"}},
                  {"SESS", {"sessions"}}},
  };
  return schema;
}

std::vector<Json> TopRows(const TopData& data, const TopData& before) {
  std::map<std::string, double> times;
  for (const v1::Session& session : before.sessions) times[session.id()] = session.device_time();
  const double elapsed = absl::ToDoubleSeconds(data.at - before.at);
  std::vector<Json> rows;
  for (const v1::Session& session : data.sessions) {
    Json& row = rows.emplace_back(SessionRow(session, data.at));
    const auto known = times.find(session.id());
    row["busy_ratio"] = nullptr;
    if (known != times.end() && elapsed > 0) {
      row["busy_ratio"] = std::clamp((session.device_time() - known->second) / elapsed, 0.0, 1.0);
    }
  }
  return rows;
}

void TopModel::update(TopData data) {
  if (paused_) return;
  before_ = std::exchange(data_, std::move(data));
}

void TopModel::tell(std::string_view text, bool error) {
  told_ = Printable(text);
  told_error_ = error;
}

std::vector<Json> TopModel::rows() const {
  Listing listing{&TopSessionSchema(), TopRows(data_, before_)};
  std::erase_if(listing.rows, [this](const Json& row) {
    const Json& devices = row.at("devices");
    const bool of_device = device_ < 0 || std::find(devices.begin(), devices.end(), Json(device_)) != devices.end();
    return !of_device || (!filter_.empty() && !Contains(row, filter_));
  });
  View view;
  view.sort = (descending_ ? "-" : "") + sort_;
  (void)SortRows(listing, view);
  return std::move(listing.rows);
}

void TopModel::move(int by) {
  const std::vector<Json> shown = rows();
  if (shown.empty()) return;
  const auto at = std::ranges::find_if(shown, [&](const Json& row) { return row.at("id") == selected_; });
  const auto index = at == shown.end() ? 0 : at - shown.begin();
  const auto last = static_cast<std::ptrdiff_t>(shown.size()) - 1;
  selected_ = shown[static_cast<size_t>(std::clamp<std::ptrdiff_t>(index + by, 0, last))].at("id");
}

void TopModel::next_sort() {
  const std::vector<Column>& columns = TopSessionSchema().columns;
  const auto at = std::ranges::find(columns, sort_, &Column::title);
  sort_ = at + 1 == columns.end() ? columns.front().title : (at + 1)->title;
}

void TopModel::next_device() { device_ = device_ + 1 < static_cast<int>(data_.devices.size()) ? device_ + 1 : -1; }

TopRequest TopModel::press(TopKey key, char character) {
  told_.clear();
  if (mode_ == Mode::kHelp) {
    mode_ = Mode::kList;
    return {};
  }
  return mode_ == Mode::kList ? press_in_list(key, character) : press_in_prompt(key, character);
}

TopRequest TopModel::press_in_list(TopKey key, char character) {
  if (key == TopKey::kUp) move(-1);
  if (key == TopKey::kDown) move(1);
  if (key != TopKey::kCharacter) return {};
  switch (character) {
    case 'q': return {.what = TopRequest::What::kQuit, .session = {}, .reason = {}};
    case 's': next_sort(); break;
    case 'r': descending_ = !descending_; break;
    case 'd': next_device(); break;
    case 'p': paused_ = !paused_; break;
    case '?': mode_ = Mode::kHelp; break;
    case 'f':
      mode_ = Mode::kFilter;
      typed_ = filter_;
      break;
    case 'k':
      move(0);
      if (readonly_) {
        tell("--readonly: nothing can be ended here", true);
      } else if (rows().empty()) {
        tell("there is no session to end", true);
      } else {
        mode_ = Mode::kReason;
        target_ = selected_;
        typed_.clear();
      }
      break;
    default: tell("? lists the keys", false);
  }
  return {};
}

TopRequest TopModel::press_in_prompt(TopKey key, char character) {
  switch (key) {
    case TopKey::kCharacter:
      if (typed_.size() < kLongestText) typed_.push_back(character);
      return {};
    case TopKey::kBackspace:
      while (!typed_.empty() && IsUtf8Continuation(typed_.back())) typed_.pop_back();
      if (!typed_.empty()) typed_.pop_back();
      return {};
    case TopKey::kEscape: mode_ = Mode::kList; return {};
    case TopKey::kEnter: break;
    default: return {};
  }
  if (std::exchange(mode_, Mode::kList) == Mode::kFilter) {
    filter_ = typed_;
    return {};
  }
  if (typed_.empty()) {
    tell("nothing was ended: a reason is needed", true);
    return {};
  }
  return {.what = TopRequest::What::kKill, .session = target_, .reason = typed_};
}

TopLine TopModel::bottom() const {
  switch (mode_) {
    case Mode::kFilter: return {absl::StrCat("filter: ", Printable(typed_), "_"), TopStyle::kTitle};
    case Mode::kReason:
      return {absl::StrCat("end ", target_, "? The reason, then Enter; Esc: no: ", Printable(typed_), "_"),
              TopStyle::kTitle};
    default: break;
  }
  if (!told_.empty()) return {told_, told_error_ ? TopStyle::kError : TopStyle::kPlain};
  return {kKeys, TopStyle::kPlain};
}

std::vector<TopLine> TopModel::draw(size_t width, size_t height) const {
  std::vector<TopLine> lines;
  lines.push_back({absl::StrCat(data_.daemon, "  ", absl::FormatTime("%H:%M:%S UTC", data_.at, absl::UTCTimeZone()),
                                paused_ ? "  PAUSED" : "", readonly_ ? "  read only" : ""),
                   TopStyle::kTitle});
  if (mode_ == Mode::kHelp) {
    for (const char* const line : kHelp) lines.push_back({line});
  } else {
    std::vector<Json> devices;
    for (size_t i = 0; i < std::min(kMostDevices, data_.devices.size()); ++i)
      devices.push_back(ToJson(data_.devices[i]));
    for (const std::string& line : TableOf(TopDeviceSchema(), devices, units_)) lines.push_back({line});
    lines[1].style = TopStyle::kHeading;
    if (data_.devices.size() > kMostDevices) {
      lines.push_back({absl::StrCat("and ", data_.devices.size() - kMostDevices, " more devices")});
    }
    const std::vector<Json> shown = rows();
    lines.push_back(
        {absl::StrCat("sessions: ", shown.size(), " of ", data_.sessions.size(), "   sort: ", sort_,
                      descending_ ? " (descending)" : "", "   device: ", device_ < 0 ? "all" : absl::StrCat(device_),
                      "   filter: ", filter_.empty() ? "-" : Printable(filter_))});
    std::vector<std::string> table = TableOf(TopSessionSchema(), shown, units_);
    lines.push_back({table.front(), TopStyle::kHeading});
    // The selected row is always in sight.
    const auto at = std::ranges::find_if(shown, [&](const Json& row) { return row.at("id") == selected_; });
    const size_t chosen = at == shown.end() ? 0 : static_cast<size_t>(at - shown.begin());
    const size_t room = height > lines.size() + 1 ? height - lines.size() - 1 : 0;
    const size_t first = chosen < room ? 0 : chosen - room + 1;
    for (size_t i = first; i < std::min(shown.size(), first + room); ++i) {
      lines.push_back({table[i + 1], i == chosen ? TopStyle::kSelected : TopStyle::kPlain});
    }
  }
  if (lines.size() >= height) lines.resize(height > 0 ? height - 1 : 0);
  if (height > 0) {
    lines.resize(height - 1);
    lines.push_back(bottom());
  }
  for (TopLine& line : lines) line.text = Fit(line.text, width);
  return lines;
}

}  // namespace flagos::ctl
