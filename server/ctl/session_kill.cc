// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>

#include <CLI/CLI.hpp>

#include <future>
#include <map>

#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"
#include "server/ctl/session_row.h"

namespace flagos::ctl {
namespace {

using Stub = v1::Control::Stub;

struct State {
  std::vector<std::string> ids;
  std::string reason;
  absl::Duration grace = absl::Seconds(10);
  bool dry_run = false;
};

// What became of those that were named.
struct Outcome {
  std::vector<v1::Session> sessions;  // that were ended, or would be
  struct Failed {
    std::string id;
    absl::Status status;
  };
  std::vector<Failed> failed;
};

// "session s3 of alice (train.py, host:4711)"
std::string Describe(const v1::Session& session) {
  return Printable(absl::StrCat("session ", session.id(), " of ", session.owner(), " (", session.program(), ", ",
                                session.origin(), ")"));
}

// All at a time: each may take the grace.
void End(const Client& client, const State& state, Outcome& outcome) {
  std::vector<std::future<absl::StatusOr<v1::KillSessionResponse>>> answers;
  for (const v1::Session& session : outcome.sessions) {
    v1::KillSessionRequest request;
    request.set_id(session.id());
    request.set_grace(absl::ToDoubleSeconds(state.grace));
    request.set_reason(state.reason);
    // It is answered once the session is over, which takes up to the grace where it is stuck.
    answers.push_back(std::async(std::launch::async, [&client, &state, request] {
      return client.Call(&Stub::KillSession, request, state.grace);
    }));
  }
  std::vector<v1::Session> ended;
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto answer = answers[i].get();
    if (answer.ok()) {
      ended.push_back(answer->session());
    } else {
      outcome.failed.push_back({outcome.sessions[i].id(), answer.status()});
    }
  }
  outcome.sessions = std::move(ended);
}

absl::Status Result(const State& state, const Outcome& outcome) {
  if (outcome.failed.empty()) return absl::OkStatus();
  if (state.ids.size() == 1) return outcome.failed.front().status;
  const std::string why = absl::StrJoin(outcome.failed, "; ", [](std::string* out, const Outcome::Failed& failed) {
    absl::StrAppend(out, failed.id, ": ", absl::StrJoin(FailureLines(failed.status), ", "));
  });
  const size_t all = outcome.failed.size() + outcome.sessions.size();
  constexpr const char* kAdvice = "see flagosctl ps";
  if (outcome.sessions.empty()) {
    return Failure(outcome.failed.front().status.code(), absl::StrCat("none of ", all, " sessions can be ended"), why,
                   kAdvice);
  }
  return Partial(absl::StrCat(outcome.failed.size(), " of ", all, " sessions cannot be ended"), why, kAdvice);
}

absl::Status Print(const Program& program, const State& state, const Outcome& outcome) {
  const View& view = program.options.view;
  if (outcome.sessions.empty()) return absl::OkStatus();
  if (view.format == Format::kTable || view.format == Format::kWide) {
    std::string text;
    for (const v1::Session& session : outcome.sessions) {
      absl::StrAppend(&text, state.dry_run ? "would end " : "ended ", Describe(session), "\n");
    }
    return program.print(text);
  }
  const absl::Time now = absl::Now();
  if (state.ids.size() == 1)
    return program.print(RenderItem(SessionSchema(), SessionRow(outcome.sessions.front(), now), view));
  Listing listing{&SessionSchema(), {}};
  for (const v1::Session& session : outcome.sessions) listing.rows.push_back(SessionRow(session, now));
  return program.print(RenderList(std::move(listing), view));
}

absl::Status Kill(const Program& program, const State& state) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  Outcome outcome;
  std::map<std::string, bool> named;
  for (const std::string& id : state.ids) {
    const auto session = FindSession(*client, id);
    if (!session.ok()) {
      outcome.failed.push_back({id, session.status()});
    } else if (!std::exchange(named[session->id()], true)) {
      outcome.sessions.push_back(*session);
    }
  }
  if (!state.dry_run) End(*client, state, outcome);
  const absl::Status printed = Print(program, state, outcome);
  return printed.ok() ? Result(state, outcome) : printed;
}

}  // namespace

void AddKillCommand(CLI::App& session, Program& program) {
  const auto state = std::make_shared<State>();
  CLI::App* const kill = session.add_subcommand("kill", "Ends sessions")->fallthrough();
  kill->add_option("id", state->ids, "Their SIDs, or unique prefixes")->required();
  kill->add_option("--reason", state->reason, "Told to the jobs")->required()->type_name("TEXT");
  kill->add_option_function<std::string>(
          "--grace", [state](const std::string& text) { state->grace = ParseDuration(text); },
          "Time to finish what is running before it is killed (10s)")
      ->check(CheckDuration)
      ->type_name("DURATION");
  kill->add_flag("--dry-run", state->dry_run, "Only say which sessions would end");
  kill->callback([&program, state] { program.run = [&program, state] { return Kill(program, *state); }; });
}

}  // namespace flagos::ctl
