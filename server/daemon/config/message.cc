// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/message.h"

#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {

void Show(const ConfigReload& reload, v1::ShowConfigResponse* to) {
  for (const ConfigEntry& entry : Entries(reload.config())) {
    v1::ConfigKey& key = *to->add_keys();
    key.set_key(Printable(entry.key));
    key.set_value(Printable(entry.value));
    key.set_origin(Printable(entry.origin));
    key.set_restart(entry.change == Change::kRestart);
    key.set_note(entry.note);
  }
  for (const std::string& file : reload.config().files) to->add_files(Printable(file));
  const ConfigReload::State& last = reload.last();
  to->set_reloaded(last.at);
  if (last.at == 0) return;
  to->set_reload_ok(last.status.ok());
  if (!last.status.ok()) to->set_reload_error(MessageOf(last.status));
}

void Show(const std::vector<ConfigChange>& changes, v1::ReloadConfigResponse* to) {
  for (const ConfigChange& change : changes) {
    v1::ConfigChange& shown = *to->add_changes();
    shown.set_key(Printable(change.to.key));
    shown.set_running(Printable(change.from));
    shown.set_value(Printable(change.to.value));
    shown.set_origin(Printable(change.to.origin));
    shown.set_restart(change.to.change == Change::kRestart);
    shown.set_note(change.to.note);
  }
}

}  // namespace flagos::daemon
