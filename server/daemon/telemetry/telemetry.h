// SPDX-License-Identifier: Apache-2.0
// What devices tell of themselves. flagosd loads no vendor's library and opens no device: a child, flagos-monitor,
// reads for it, one on a node, and this keeps it running and holds what it sent last.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "proto/wire/telemetry.h"
#include "server/daemon/config/config.h"
#include "server/daemon/event_loop.h"
#include "server/daemon/executors/child_process.h"

namespace flagos::daemon {

// Loop thread only. Never waits for the monitor: one that dies, or says nothing for ten intervals, is replaced, later
// each time that it happens. What it sends is checked like a stranger's bytes.
class Telemetry {
 public:
  // The last reading of a device. `figures` is null once that is older than three intervals: no news is not good news.
  struct Latest {
    double age = 0;  // seconds
    const DeviceReading* figures = nullptr;
  };

  Telemetry(EventLoop& loop, const Config& config);
  ~Telemetry() { stop(); }
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  // Whether there is something to start: the vendor has a monitor, and somebody can ask for figures, which of an
  // embedded flagosd nobody can.
  bool watched() const { return watched_; }
  void start();
  // Follows [devices] telemetry after it has changed: a monitor is told its interval when it starts.
  void config_changed();
  // Ends the monitor, for good.
  void stop();

  std::optional<Latest> latest(const DeviceUuid& uuid) const;
  // Why there is nothing new; empty where nothing is wrong.
  const std::string& problem() const { return problem_; }
  // Of the monitor that runs; -1: none.
  pid_t pid() const { return child_.pidfd ? child_.pid : -1; }

 private:
  void launch();
  void go_on();
  absl::Status try_launch();
  void read_channel();
  bool take(std::span<const std::byte> bytes);
  void fall_silent();
  void handle_exit();
  void trouble(const std::string& why);
  void retry_later();
  void kill() const;
  Clock::duration patience(int intervals) const;

  EventLoop& loop_;
  const Config& config_;
  bool watched_;
  std::chrono::nanoseconds interval_;  // that the monitor has
  bool replaced_ = false;              // the one that runs is ended for the next
  ChildProcess child_;
  UniqueFd channel_;
  Clock::time_point launched_{};
  uint32_t failures_ = 0;  // in a row
  std::string problem_;
  std::vector<DeviceReading> readings_;
  Clock::time_point read_at_{};
  std::vector<std::byte> buffer_;
  Watch channel_watch_, exit_watch_, silence_, retry_;
};

}  // namespace flagos::daemon
