// SPDX-License-Identifier: Apache-2.0
// Completion for shells, generated from the very tree of commands that the command line is parsed with.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <CLI/CLI.hpp>

#include <algorithm>

#include "server/ctl/commands.h"

namespace flagos::ctl {
namespace {

// What may follow each command: "flagosctl device" -> its verbs, and the options that it and those above it take.
struct Tables {
  std::string commands, options;  // lines `["flagosctl device"]="list show"`
};

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// `open` and `close` surround a key.
void Fill(const CLI::App& app, const std::string& path, std::vector<std::string> inherited, const char* open,
          const char* close, Tables& tables) {
  for (std::string& name : OptionsOf(app)) {
    if (std::ranges::find(inherited, name) == inherited.end()) inherited.push_back(std::move(name));
  }
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands({})) names.push_back(command->get_name());
  absl::StrAppend(&tables.commands, "  ", open, path, close, "\"", absl::StrJoin(names, " "), "\"\n");
  absl::StrAppend(&tables.options, "  ", open, path, close, "\"", absl::StrJoin(inherited, " "), "\"\n");
  for (const CLI::App* const command : app.get_subcommands({})) {
    Fill(*command, path + " " + command->get_name(), inherited, open, close, tables);
  }
}

constexpr char kBash[] = R"bash(_flagosctl() {
  local at=flagosctl word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ " ${_flagosctl_commands[$at]} " == *" $word "* ]] && at+=" $word"
  done
  COMPREPLY=($(compgen -W "${_flagosctl_commands[$at]} ${_flagosctl_options[$at]}" -- "$2"))
}
complete -o default -F _flagosctl flagosctl
)bash";

constexpr char kZsh[] = R"(local at=flagosctl word
for word in "${(@)words[2,CURRENT-1]}"; do
  [[ " ${_flagosctl_commands[$at]} " == *" $word "* ]] && at+=" $word"
done
if [[ $PREFIX == -* ]]; then
  compadd -- ${=_flagosctl_options[$at]}
elif [[ -n ${_flagosctl_commands[$at]} ]]; then
  compadd -- ${=_flagosctl_commands[$at]}
else
  _files
fi
)";

std::string Bash(const CLI::App& app) {
  Tables tables;
  Fill(app, app.get_name(), {}, "[\"", "\"]=", tables);
  return absl::StrCat("# bash completion for flagosctl\ndeclare -A _flagosctl_commands=(\n", tables.commands,
                      ")\ndeclare -A _flagosctl_options=(\n", tables.options, ")\n", kBash);
}

std::string Zsh(const CLI::App& app) {
  Tables tables;
  Fill(app, app.get_name(), {}, "\"", "\" ", tables);
  return absl::StrCat("#compdef flagosctl\nlocal -A _flagosctl_commands=(\n", tables.commands,
                      ")\nlocal -A _flagosctl_options=(\n", tables.options, ")\n", kZsh);
}

}  // namespace

void AddCompletionCommand(CLI::App& app, Program& program) {
  CLI::App* const noun =
      app.add_subcommand("completion", "Prints the completion of this command line for a shell")->require_subcommand(1);
  const auto add = [&](const char* shell, std::string (*script)(const CLI::App&)) {
    noun->add_subcommand(shell, absl::StrCat("For ", shell))->callback([&app, &program, script] {
      program.run = [&app, &program, script] { return program.print(script(app)); };
    });
  };
  add("bash", Bash);
  add("zsh", Zsh);
}

}  // namespace flagos::ctl
