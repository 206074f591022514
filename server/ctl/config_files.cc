// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/config_files.h"

#include <utility>

#include "server/ctl/commands.h"
#include "server/daemon/config/sources.h"
#include "server/daemon/config/view.h"

namespace flagos::ctl {

const char* DefaultConfigFile() { return daemon::kDefaultConfigFile; }

std::string ConfigFile(const Program& program, const std::string& named) {
  if (!named.empty()) return named;
  // Whatever keeps it from answering: the files can be read without it.
  if (const auto client = program.connect(); client.ok()) {
    const auto shown = client->Call(&v1::Control::Stub::ShowConfig, v1::ShowConfigRequest());
    if (shown.ok() && shown->files_size() > 0) return shown->files(0);
  }
  return DefaultConfigFile();
}

std::vector<std::string> ConfigMistakes(const std::string& file) {
  daemon::Config config;
  std::vector<std::string> mistakes = daemon::SourcesOf(file).load(config);
  for (std::string& mistake : mistakes) mistake = Printable(mistake);
  return mistakes;
}

absl::Status WrongConfig(const std::vector<std::string>& mistakes) {
  return daemon::WrongConfiguration(mistakes, "mend it, and check it with flagosctl config check");
}

absl::StatusOr<std::vector<Json>> ReadConfig(const std::string& file) {
  daemon::Config config;
  if (const auto mistakes = daemon::SourcesOf(file).load(config); !mistakes.empty()) return WrongConfig(mistakes);
  std::vector<Json> rows;
  for (const daemon::ConfigEntry& entry : daemon::Entries(config)) {
    const bool restart = entry.change == daemon::Change::kRestart;
    rows.push_back({{"key", Printable(entry.key)},
                    {"value", Printable(entry.value)},
                    {"origin", Printable(entry.origin)},
                    {"restart", restart},
                    {"note", entry.note},
                    {"effect", EffectOf(restart)}});
  }
  return rows;
}

const char* EffectOf(bool restart) { return restart ? "restart" : "reload"; }

}  // namespace flagos::ctl
