// SPDX-License-Identifier: Apache-2.0
// What flagosctl top shows and what its keys do, without a terminal.
#pragma once

#include <absl/time/time.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "flagos/v1/control.pb.h"
#include "server/ctl/listing.h"

namespace flagos::ctl {

// One look at flagosd.
struct TopData {
  std::string daemon;  // "flagosd 0.1.0 at /run/flagos/flagosd.sock"
  std::vector<v1::Session> sessions;
  std::vector<v1::Device> devices;
  absl::Time at;
};

// A row for each session, with `busy_ratio`: the share of the time since `before` in which its executor was busy; null
// where that had no such session.
std::vector<Json> TopRows(const TopData& data, const TopData& before);
const Schema& TopSessionSchema();
const Schema& TopDeviceSchema();

enum class TopStyle { kPlain, kTitle, kHeading, kSelected, kError };
struct TopLine {
  std::string text;  // no wider than the screen
  TopStyle style = TopStyle::kPlain;
};

enum class TopKey { kCharacter, kUp, kDown, kEnter, kEscape, kBackspace };

// What a key asks of the program.
struct TopRequest {
  enum class What { kNothing, kQuit, kKill } what = What::kNothing;
  std::string session, reason;  // of kKill
};

class TopModel {
 public:
  // `readonly`: no key ends anything.
  TopModel(bool readonly, Units units) : readonly_(readonly), units_(units) {}

  // A new look; nothing while it is paused.
  void update(TopData data);
  // A line at the bottom, until the next key.
  void tell(std::string_view text, bool error);

  // `character`: of kCharacter, an ASCII letter or a byte of a longer one.
  TopRequest press(TopKey key, char character = 0);

  // At most `height` lines.
  std::vector<TopLine> draw(size_t width, size_t height) const;

 private:
  enum class Mode { kList, kFilter, kReason, kHelp };

  TopRequest press_in_prompt(TopKey key, char character);
  TopRequest press_in_list(TopKey key, char character);
  // Those that filter and device let through, in order.
  std::vector<Json> rows() const;
  void move(int by);
  void next_sort();
  void next_device();
  TopLine bottom() const;

  const bool readonly_;
  const Units units_;
  TopData data_, before_;
  bool paused_ = false;
  Mode mode_ = Mode::kList;
  std::string sort_ = "BUSY";
  bool descending_ = true;
  std::string filter_, typed_;
  int device_ = -1;       // -1: all
  std::string selected_;  // the session's id; the first row where there is no such
  std::string target_;    // of the kill whose reason is typed
  std::string told_;
  bool told_error_ = false;
};

}  // namespace flagos::ctl
