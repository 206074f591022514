// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include "server/ctl/commands.h"
#include "server/ctl/config_files.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/message_json.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"

namespace flagos::ctl {
namespace {

using Stub = v1::Control::Stub;

struct State {
  std::string file;
  bool effective = false;
  bool dry_run = false;
};

bool IsTable(const View& view) { return view.format == Format::kTable || view.format == Format::kWide; }

Json WithEffect(const google::protobuf::Message& message) {
  Json row = ToJson(message);
  row["effect"] = EffectOf(row.at("restart").get<bool>());
  return row;
}

absl::Status ShowEffective(const Program& program) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  const auto response = client->Call(&Stub::ShowConfig, v1::ShowConfigRequest());
  if (!response.ok()) return response.status();
  Listing listing{&ConfigKeySchema(), {}};
  for (const v1::ConfigKey& key : response->keys()) listing.rows.push_back(WithEffect(key));
  return program.print(RenderList(std::move(listing), program.options.view));
}

absl::Status Show(const Program& program, const State& state) {
  if (state.effective && !state.file.empty()) {
    return Failure(absl::StatusCode::kInvalidArgument, "--effective and FILE exclude each other",
                   "the one asks flagosd, and the other a file", "give one of them");
  }
  if (state.effective) return ShowEffective(program);
  Listing listing{&ConfigKeySchema(), {}};
  const auto rows = ReadConfig(ConfigFile(program, state.file));
  if (!rows.ok()) return rows.status();
  listing.rows = *rows;
  return program.print(RenderList(std::move(listing), program.options.view));
}

absl::Status Check(const Program& program, const State& state) {
  const std::string file = ConfigFile(program, state.file);
  const std::vector<std::string> mistakes = ConfigMistakes(file);
  const View& view = program.options.view;
  absl::Status printed;
  if (IsTable(view)) {
    std::string text = mistakes.empty() ? absl::StrCat("ok: ", file, "\n") : std::string();
    for (const std::string& mistake : mistakes) absl::StrAppend(&text, mistake, "\n");
    printed = program.print(text);
  } else {
    Listing listing{&ConfigMistakeSchema(), {}};
    for (const std::string& mistake : mistakes) listing.rows.push_back({{"mistake", mistake}});
    printed = program.print(RenderList(std::move(listing), view));
  }
  return printed.ok() && !mistakes.empty() ? WrongConfig(mistakes) : printed;
}

// Both ask the same of flagosd: a difference is what a reload would change.
absl::Status Reload(const Program& program, bool dry_run, bool table) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  v1::ReloadConfigRequest request;
  request.set_dry_run(dry_run);
  const auto response = client->Call(&Stub::ReloadConfig, request);
  if (!response.ok()) return response.status();
  if (!table && IsTable(program.options.view)) {
    std::string text = dry_run ? "a reload would change:\n" : "reloaded:\n";
    for (const v1::ConfigChange& change : response->changes()) {
      absl::StrAppend(&text, "  ", change.key(), ": ", change.running().empty() ? "-" : change.running(), " -> ",
                      change.value().empty() ? "-" : change.value(), " (", change.origin(), ")",
                      change.restart() ? "; takes effect after a restart" : "", "\n");
    }
    if (response->changes().empty())
      text = dry_run ? "a reload would change nothing\n" : "reloaded: nothing has changed\n";
    return program.print(text);
  }
  Listing listing{&ConfigChangeSchema(), {}};
  for (const v1::ConfigChange& change : response->changes()) listing.rows.push_back(WithEffect(change));
  return program.print(RenderList(std::move(listing), program.options.view));
}

}  // namespace

void AddConfigCommands(CLI::App& app, Program& program) {
  CLI::App* const noun =
      app.add_subcommand("config", "The configuration of flagosd")->require_subcommand(1)->fallthrough();
  const auto state = std::make_shared<State>();
  const std::string which = absl::StrCat("The file (flagosd's, else ", DefaultConfigFile(), ")");

  CLI::App* const check =
      noun->add_subcommand("check", "Reads files as flagosd would, and says what is wrong")->fallthrough();
  check->add_option("file", state->file, which)->type_name("FILE");
  check->callback([&program, state] { program.run = [&program, state] { return Check(program, *state); }; });

  CLI::App* const show = noun->add_subcommand("show", "Every key, its value, and where that comes from")->fallthrough();
  show->add_option("file", state->file, which)->type_name("FILE");
  show->add_flag("--effective", state->effective, "What flagosd runs with, instead of what files say");
  show->callback([&program, state] { program.run = [&program, state] { return Show(program, *state); }; });

  CLI::App* const diff = noun->add_subcommand("diff", "What a reload would change")->fallthrough();
  diff->callback([&program] { program.run = [&program] { return Reload(program, true, true); }; });

  CLI::App* const reload =
      noun->add_subcommand("reload", "Has flagosd read its files again; a wrong one changes nothing")->fallthrough();
  reload->add_flag("--dry-run", state->dry_run, "Only say what would change");
  reload->callback(
      [&program, state] { program.run = [&program, state] { return Reload(program, state->dry_run, false); }; });
}

}  // namespace flagos::ctl
