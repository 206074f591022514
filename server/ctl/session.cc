// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <CLI/CLI.hpp>

#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"
#include "server/ctl/session_row.h"

namespace flagos::ctl {
namespace {

using Stub = v1::Control::Stub;

struct State {
  std::optional<absl::Duration> watch;
  bool all = false;
  std::string id;
  absl::Duration interval = absl::ZeroDuration();
};

absl::StatusOr<Listing> ListSessions(const Client& client, bool all) {
  v1::ListSessionsRequest request;
  request.set_all(all);
  const auto response = client.Call(&Stub::ListSessions, request);
  if (!response.ok()) return response.status();
  Listing listing{&SessionSchema(), {}};
  const absl::Time now = absl::Now();
  for (const v1::Session& session : response->sessions()) listing.rows.push_back(SessionRow(session, now));
  return listing;
}

absl::Status Show(const Program& program, const State& state) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  const auto session = FindSession(*client, state.id);
  if (!session.ok()) return session.status();
  return program.print(RenderItem(SessionSchema(), SessionRow(*session, absl::Now()), program.options.view));
}

}  // namespace

absl::StatusOr<v1::Session> FindSession(const Client& client, const std::string& id) {
  v1::ShowSessionRequest request;
  request.set_id(id);
  auto response = client.Call(&Stub::ShowSession, request);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_session());
}

void AddSessionCommands(CLI::App& app, Program& program) {
  CLI::App* const noun =
      app.add_subcommand("session", "Processes attached to flagosd")->require_subcommand(1)->fallthrough();
  const auto state = std::make_shared<State>();

  for (CLI::App* const list :
       {app.add_subcommand("ps", "Short for session list"), noun->add_subcommand("list", "Sessions, with their use")}) {
    list->fallthrough();
    list->add_flag("-a,--all", state->all, "Also those that ended and are still remembered");
    AddWatch(*list, state->watch);
    list->callback([&program, state] {
      program.run = [&program, state] {
        return PrintList(program, state->watch,
                         [state](const Client& client) { return ListSessions(client, state->all); });
      };
    });
  }

  CLI::App* const watch =
      noun->add_subcommand("watch", "A line for each session and each change, until interrupted")->fallthrough();
  watch
      ->add_option_function<std::string>(
          "--interval", [state](const std::string& text) { state->interval = ParseDuration(text); },
          "Also the figures, this often")
      ->check(CheckDuration)
      ->type_name("DURATION");
  watch->callback(
      [&program, state] { program.run = [&program, state] { return WatchSessions(program, state->interval); }; });

  CLI::App* const show = noun->add_subcommand("show", "Everything about one session")->fallthrough();
  show->add_option("id", state->id, "Its SID, or a unique prefix")->required();
  show->callback([&program, state] { program.run = [&program, state] { return Show(program, *state); }; });

  AddKillCommand(*noun, program);
}

}  // namespace flagos::ctl
