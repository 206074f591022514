// SPDX-License-Identifier: Apache-2.0
// The terminal, by ncurses.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/ctl/top/model.h"

namespace flagos::ctl {

// Has the terminal for itself until it is destroyed, also where the program is interrupted. One at a time, one thread.
class Screen {
 public:
  // FailedPrecondition: nothing is known of such a terminal.
  static absl::StatusOr<std::unique_ptr<Screen>> Open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  size_t width() const;
  size_t height() const;
  void draw(const std::vector<TopLine>& lines);

  struct Press {
    TopKey key = TopKey::kCharacter;
    char character = 0;
  };
  // The next key; nullopt after `patience`, and where the terminal has another size.
  std::optional<Press> read(absl::Duration patience);

 private:
  Screen() = default;
  void* screen_ = nullptr;
};

}  // namespace flagos::ctl
