// SPDX-License-Identifier: Apache-2.0
// Taking a changed configuration over while flagosd runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/daemon/config/sources.h"
#include "server/daemon/config/view.h"

namespace flagos::daemon {

// Loop thread only, from start() of flagosd on. Files are read on it: they are small and the node's own, and a reload
// is the administrator's.
class ConfigReload {
 public:
  // `config` is what everything of flagosd refers to. It changes within reload() only.
  ConfigReload(ConfigSources sources, Config& config) : sources_(std::move(sources)), config_(config) {}

  // Called after the hot keys have changed.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  // The service manager has been told READY=1: from then on it is told of reloads.
  void announced() { announced_ = true; }

  // What a reload would change. FailedPrecondition, in three lines, where the files are wrong or there are none.
  absl::StatusOr<std::vector<ConfigChange>> compare() const;

  // All or nothing: takes the hot keys over, and returns every key that has changed, those that need a restart too.
  // Wherever it fails the old configuration holds.
  absl::StatusOr<std::vector<ConfigChange>> reload();

  // The latest reload.
  struct State {
    double at = 0;  // Unix seconds; 0: there was none
    absl::Status status;
  };
  const State& last() const { return last_; }
  const Config& config() const { return config_; }
  // Whether there are files to read at all.
  bool has_files() const { return sources_.file_now().has_value(); }

 private:
  absl::StatusOr<Config> load() const;
  absl::StatusOr<std::vector<ConfigChange>> apply();

  const ConfigSources sources_;
  Config& config_;
  std::function<void()> changed_;
  bool announced_ = false;
  State last_;
};

}  // namespace flagos::daemon
