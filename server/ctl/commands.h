// SPDX-License-Identifier: Apache-2.0
// The commands, a noun a file. Each declares its verbs on the App; the verb that was given leaves what to do in
// Program::run, and main() carries it out.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "server/ctl/client.h"
#include "server/ctl/options.h"

namespace flagos::ctl {

struct Program {
  Options options;
  std::ostream* out = nullptr;
  bool terminal = false;  // `out` is one: colours and redrawing are welcome
  std::function<absl::Status()> run;

  // The socket that the options or the environment name.
  absl::StatusOr<std::string> socket() const;
  absl::StatusOr<Client> connect() const;
  // Writes at once; an error where the reader has gone.
  absl::Status print(const std::string& text) const;
  absl::Status print(const absl::StatusOr<std::string>& text) const;
};

void AddDeviceCommands(CLI::App& app, Program& program);
void AddSessionCommands(CLI::App& app, Program& program);
// After the session commands, of which it is one.
void AddTopCommand(CLI::App& app, Program& program);
void AddLeaseCommands(CLI::App& app, Program& program);
void AddRuntimeCommands(CLI::App& app, Program& program);
void AddAuditCommands(CLI::App& app, Program& program);
void AddVersionCommand(CLI::App& app, Program& program);
void AddConfigCommands(CLI::App& app, Program& program);
void AddDaemonCommands(CLI::App& app, Program& program);
void AddDoctorCommand(CLI::App& app, Program& program);
// After all others, which it lists.
void AddCompletionCommand(CLI::App& app, Program& program);

// `session kill`, of which `session` is the noun.
void AddKillCommand(CLI::App& session, Program& program);

// The session with this SID, or the only one whose SID begins so.
absl::StatusOr<v1::Session> FindSession(const Client& client, const std::string& id);

// Prints what `fetch` answers, once or, with an interval, again and again until the process is interrupted.
absl::Status PrintList(const Program& program, const std::optional<absl::Duration>& interval,
                       const std::function<absl::StatusOr<Listing>(const Client&)>& fetch);

// Prints an event for each session, then one for each change, until flagosd ends or the process is interrupted. An
// interval of zero: changes of state only.
absl::Status WatchSessions(const Program& program, absl::Duration interval);

// Runs a command line (without the program's name); what main() returns.
int Run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err, bool terminal);

}  // namespace flagos::ctl
