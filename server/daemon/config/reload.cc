// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/reload.h"

#include <algorithm>
#include <utility>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/systemd.h"
#include "server/daemon/time.h"

namespace flagos::daemon {
namespace {

constexpr std::string_view kAdvice = "mend it, and reload again; the old configuration holds until then";

bool SameLog(const log::Options& a, const log::Options& b) {
  return a.level == b.level && a.format == b.format && a.file == b.file;
}

}  // namespace

absl::StatusOr<Config> ConfigReload::load() const {
  if (!has_files()) {
    return absl::FailedPreconditionError(
        "there is no configuration file to read\nflagosd was started without --config, or the file is not there\nstart "
        "it with --config FILE");
  }
  Config config;
  if (const auto mistakes = sources_.load(config); !mistakes.empty()) return WrongConfiguration(mistakes, kAdvice);
  return config;
}

absl::StatusOr<std::vector<ConfigChange>> ConfigReload::compare() const {
  const auto config = load();
  if (!config.ok()) return config.status();
  return Changes(config_, *config);
}

absl::StatusOr<std::vector<ConfigChange>> ConfigReload::apply() {
  const auto config = load();
  if (!config.ok()) return config.status();
  // The one step that may fail comes first.
  if (!SameLog(config->daemon.log, config_.daemon.log)) {
    if (const absl::Status status = log::Start(config->daemon.log); !status.ok()) {
      const auto origin = config->origins.find("daemon.log_file");
      const std::string where = origin == config->origins.end() ? std::string() : Cat(origin->second, ": ");
      return absl::FailedPreconditionError(Cat("the log cannot be moved\n", where, MessageOf(status), "\n", kAdvice));
    }
  }
  std::vector<ConfigChange> changes = Changes(config_, *config);
  TakeHotKeys(*config, config_);
  if (changed_) changed_();
  return changes;
}

absl::StatusOr<std::vector<ConfigChange>> ConfigReload::reload() {
  if (announced_) NotifyReloading();
  auto changes = apply();
  if (announced_) NotifyServiceManager("READY=1");
  last_ = {.at = UnixSeconds(), .status = changes.status()};
  if (!changes.ok()) {
    log::Warn("configuration not reloaded: the old one holds", {{"error", MessageOf(changes.status())}});
    return changes;
  }
  for (const ConfigChange& change : *changes) {
    const bool hot = change.to.change == Change::kHot;
    log::Write(hot ? log::Level::kInfo : log::Level::kWarn,
               hot ? "configuration changed" : "configuration changed: takes effect after a restart",
               {{"key", change.to.key}, {"from", change.from}, {"to", change.to.value}, {"origin", change.to.origin}});
  }
  log::Info("configuration reloaded", {{"changes", changes->size()}});
  return changes;
}

}  // namespace flagos::daemon
