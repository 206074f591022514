// SPDX-License-Identifier: Apache-2.0
// flagosctl daemon debug-bundle: what somebody needs who is to find a fault from far away.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>

#include <CLI/CLI.hpp>

#include <sstream>

#include "server/common/status.h"
#include "server/ctl/commands.h"
#include "server/ctl/config_files.h"
#include "server/ctl/debug/archive.h"
#include "server/ctl/debug/redact.h"
#include "server/ctl/debug/system.h"
#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

constexpr size_t kMostOfTheLog = 2 << 20;

struct State {
  std::string file;
};

// Gathers texts, redacted; what cannot be had is noted.
class Bundle {
 public:
  Bundle(const Program& program, std::string folder)
      : program_(program), folder_(std::move(folder)), secrets_(SecretsOfEnvironment()) {}

  void add(const std::string& name, std::string text) {
    files_.push_back({absl::StrCat(folder_, "/", name), Redact(std::move(text), secrets_)});
    contents_.push_back(name);
  }
  void miss(const std::string& name, const std::string& why) { missing_.push_back(absl::StrCat(name, ": ", why)); }

  // What a command of flagosctl prints, asked for at the same socket.
  void add_command(const std::string& name, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json", "--timeout", absl::FormatDuration(program_.options.timeout)});
    if (!program_.options.socket.empty()) arguments.insert(arguments.end(), {"--socket", program_.options.socket});
    std::ostringstream out, err;
    Run(arguments, out, err, false);
    if (!out.str().empty()) add(name, out.str());
    if (!err.str().empty()) {
      const absl::Status failure = absl::UnknownError(err.str());
      miss(name, absl::StrJoin(FailureLines(failure), " "));
    }
  }

  void add_log() {
    std::string file;
    if (const auto client = program_.connect(); client.ok()) {
      const auto config = client->Call(&v1::Control::Stub::ShowConfig, v1::ShowConfigRequest());
      for (int i = 0; config.ok() && i < config->keys_size(); ++i) {
        if (config->keys(i).key() == "daemon.log_file") file = config->keys(i).value();
      }
    } else if (const auto rows = ReadConfig(DefaultConfigFile()); rows.ok()) {
      for (const Json& row : *rows) {
        if (row.at("key") == "daemon.log_file") file = row.at("value");
      }
    }
    std::string log = file.empty() ? TailOfJournal() : TailOf(file, kMostOfTheLog);
    if (!log.empty()) return add("log.txt", std::move(log));
    miss("log.txt", file.empty() ? "the journal has nothing of flagosd, or is not yours to read"
                                 : absl::StrCat(file, " is not yours to read, or empty"));
  }

  std::string archive(absl::Time now) {
    std::string about =
        "What flagosctl daemon debug-bundle found. Tokens and the values of secret variables are redacted; names of "
        "users, programs, hosts' files and devices are not.\n\n";
    absl::StrAppend(&about, "has: ", absl::StrJoin(contents_, ", "), "\n");
    for (const std::string& missing : missing_) absl::StrAppend(&about, "not there: ", missing, "\n");
    add("README.txt", about);
    return MakeArchive(files_, now);
  }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  const Program& program_;
  const std::string folder_;
  const std::vector<std::string> secrets_;
  std::vector<ArchivedText> files_;
  std::vector<std::string> contents_, missing_;
};

absl::Status Write(const Program& program, const State& state) {
  const absl::Time now = absl::Now();
  const std::string name = absl::StrCat("flagos-debug-", absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
  const std::string file = state.file.empty() ? name + ".tar.gz" : state.file;
  Bundle bundle(program, name);
  bundle.add_command("version.json", {"version"});
  bundle.add_command("doctor.json", {"doctor"});
  bundle.add_command("config.json", {"config", "show", "--effective"});
  bundle.add_command("sessions.json", {"ps", "--all"});
  bundle.add_command("devices.json", {"device", "list"});
  bundle.add_command("runtimes.json", {"runtime", "list"});
  bundle.add("system.txt", DescribeSystem());
  bundle.add_log();
  FLAGOS_RETURN_IF_ERROR(WriteNewFile(file, bundle.archive(now)));
  std::string text = absl::StrCat("wrote ", file, "\n");
  for (const std::string& missing : bundle.missing()) absl::StrAppend(&text, "  without ", missing, "\n");
  return program.print(text);
}

}  // namespace

void AddDaemonCommands(CLI::App& app, Program& program) {
  CLI::App* const noun = app.add_subcommand("daemon", "flagosd as a whole")->require_subcommand(1)->fallthrough();
  const auto state = std::make_shared<State>();
  CLI::App* const bundle =
      noun->add_subcommand("debug-bundle", "Packs what is needed to find a fault, without secrets; needs no flagosd")
          ->fallthrough();
  bundle->add_option("-o,--file", state->file, "Archive to write, .tar.gz (flagos-debug-TIME.tar.gz)")
      ->type_name("FILE");
  bundle->callback([&program, state] { program.run = [&program, state] { return Write(program, *state); }; });
}

}  // namespace flagos::ctl
