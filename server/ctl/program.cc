// SPDX-License-Identifier: Apache-2.0
#include <absl/time/clock.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>

#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/render.h"

namespace flagos::ctl {

absl::StatusOr<std::string> Program::socket() const {
  if (!options.socket.empty()) return options.socket;
  return DefaultSocket(std::getenv("FLAGOS_ENDPOINT"));
}

absl::StatusOr<Client> Program::connect() const {
  const auto path = socket();
  if (!path.ok()) return path.status();
  return Client::Connect(*path, options.timeout);
}

absl::Status Program::print(const std::string& text) const {
  if (*out << text << std::flush) return absl::OkStatus();
  return Failure(absl::StatusCode::kInternal, "cannot write the answer", "the output was closed or its disk is full",
                 "");
}

absl::Status Program::print(const absl::StatusOr<std::string>& text) const {
  return text.ok() ? print(*text) : text.status();
}

absl::Status PrintList(const Program& program, const std::optional<absl::Duration>& interval,
                       const std::function<absl::StatusOr<Listing>(const Client&)>& fetch) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  View view = program.options.view;
  view.one_line = interval.has_value();
  for (;;) {
    auto listing = fetch(*client);
    if (!listing.ok()) return listing.status();
    auto text = RenderList(*std::move(listing), view);
    if (!text.ok() || !interval) return program.print(text);
    const bool redraw = program.terminal && (view.format == Format::kTable || view.format == Format::kWide);
    // Home, the new text, and nothing of the old one behind it: no flicker.
    const std::string frame = redraw ? "\x1b[H\x1b[2J" + *text : *text;
    if (absl::Status status = program.print(frame); !status.ok()) return status;
    if (view.format == Format::kCsv) view.headers = false;
    absl::SleepFor(*interval);
  }
}

int Run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err, bool terminal) {
  Program program;
  program.out = &out;
  program.terminal = terminal;
  CLI::App app("Shows and steers a flagosd, the device server for PyTorch.", "flagosctl");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "The help of every command");
  AddOptions(app, program.options);
  AddSessionCommands(app, program);
  AddTopCommand(app, program);
  AddDeviceCommands(app, program);
  AddLeaseCommands(app, program);
  AddConfigCommands(app, program);
  AddRuntimeCommands(app, program);
  AddAuditCommands(app, program);
  AddDaemonCommands(app, program);
  AddVersionCommand(app, program);
  AddDoctorCommand(app, program);
  AddCompletionCommand(app, program);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& success) {
    return app.exit(success, out, err);
  } catch (const CLI::ParseError& error) {
    PrintFailure(err, Failure(absl::StatusCode::kInvalidArgument, "the command line is not understood", error.what(),
                              "see flagosctl --help"));
    return static_cast<int>(ExitCode::kUsage);
  }
  const absl::Status status = program.run();
  if (!status.ok() && !status.message().empty()) PrintFailure(err, status);
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace flagos::ctl
