// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/top/screen.h"

#include <absl/strings/str_cat.h>
#define NCURSES_NOMACROS  // functions, which a namespace can be asked for
#include <ncurses.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

constexpr int kEscape = 27;
constexpr int kEscapeDelay = 50;  // milliseconds in which the rest of a key's sequence comes
constexpr short kErrorColour = 1;

attr_t AttributesOf(TopStyle style) {
  switch (style) {
    case TopStyle::kTitle: return A_BOLD;
    case TopStyle::kHeading: return A_UNDERLINE;
    case TopStyle::kSelected: return A_REVERSE;
    case TopStyle::kError: return A_BOLD | static_cast<attr_t>(COLOR_PAIR(kErrorColour));
    case TopStyle::kPlain: break;
  }
  return A_NORMAL;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Screen>> Screen::Open() {
  std::setlocale(LC_CTYPE, "");
  std::unique_ptr<Screen> screen(new Screen);
  SCREEN* const terminal = ::newterm(nullptr, stdout, stdin);
  if (terminal == nullptr) {
    const char* const name = std::getenv("TERM");
    return Failure(absl::StatusCode::kFailedPrecondition, "cannot use this terminal",
                   absl::StrCat("nothing is known of a terminal called \"", name == nullptr ? "" : name, "\" (TERM)"),
                   "set TERM to what it is, as xterm, or use flagosctl top --once");
  }
  screen->screen_ = terminal;
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::set_escdelay(kEscapeDelay);
  ::curs_set(0);
  if (::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(kErrorColour, COLOR_RED, -1);
  }
  return screen;
}

Screen::~Screen() {
  if (screen_ == nullptr) return;
  ::endwin();
  ::delscreen(static_cast<SCREEN*>(screen_));
}

size_t Screen::width() const { return static_cast<size_t>(std::max(getmaxx(stdscr), 1)); }
size_t Screen::height() const { return static_cast<size_t>(std::max(getmaxy(stdscr), 1)); }

void Screen::draw(const std::vector<TopLine>& lines) {
  ::erase();
  int y = 0;
  for (const TopLine& line : lines) {
    ::attrset(static_cast<int>(AttributesOf(line.style)));
    ::mvaddstr(y, 0, line.text.c_str());
    // A bar over the whole width.
    if (line.style == TopStyle::kSelected || line.style == TopStyle::kHeading) {
      for (size_t x = DisplayWidth(line.text); x < width(); ++x) ::addch(' ');
    }
    ++y;
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

std::optional<Screen::Press> Screen::read(absl::Duration patience) {
  const auto limit = std::clamp<int64_t>(absl::ToInt64Milliseconds(patience), 0, std::numeric_limits<int>::max());
  ::timeout(static_cast<int>(limit));
  const int key = ::getch();
  switch (key) {
    case ERR:
    case KEY_RESIZE: return std::nullopt;
    case KEY_UP: return Press{TopKey::kUp};
    case KEY_DOWN: return Press{TopKey::kDown};
    case '\r':
    case '\n':
    case KEY_ENTER: return Press{TopKey::kEnter};
    case kEscape: return Press{TopKey::kEscape};
    case '\b':
    case 127:
    case KEY_BACKSPACE: return Press{TopKey::kBackspace};
    default: break;
  }
  if (key < ' ' || key > 255) return std::nullopt;
  return Press{TopKey::kCharacter, static_cast<char>(key)};
}

}  // namespace flagos::ctl
