// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <chrono>
#include <future>

#include "server/common/status.h"
#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/message_json.h"
#include "server/ctl/render.h"
#include "server/ctl/top/model.h"
#include "server/ctl/top/screen.h"

namespace flagos::ctl {
namespace {

using Stub = v1::Control::Stub;

constexpr absl::Duration kGrace = absl::Seconds(10);
constexpr absl::Duration kLongestWait = absl::Milliseconds(250);  // between looks at a kill that goes on

struct State {
  absl::Duration interval = absl::Seconds(2);
  bool once = false;
  bool readonly = false;
};

absl::StatusOr<TopData> Look(const Client& client) {
  const auto sessions = client.Call(&Stub::ListSessions, v1::ListSessionsRequest());
  if (!sessions.ok()) return sessions.status();
  const auto devices = client.Call(&Stub::ListDevices, v1::ListDevicesRequest());
  if (!devices.ok()) return devices.status();
  return TopData{.daemon = absl::StrCat("flagosd ", client.version().version(), " at ", client.socket()),
                 .sessions = {sessions->sessions().begin(), sessions->sessions().end()},
                 .devices = {devices->devices().begin(), devices->devices().end()},
                 .at = absl::Now()};
}

std::string OneLine(const absl::Status& status) { return absl::StrJoin(FailureLines(status), ": "); }

absl::Status ShowOnce(const Program& program) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  const auto data = Look(*client);
  if (!data.ok()) return data.status();
  const View& view = program.options.view;
  Listing sessions{&TopSessionSchema(), TopRows(*data, {})};
  if (view.format == Format::kCsv) return program.print(RenderList(std::move(sessions), view));
  std::vector<Json> devices;
  for (const v1::Device& device : data->devices) devices.push_back(ToJson(device));
  if (view.format == Format::kJson || view.format == Format::kYaml) {
    static const Schema kTop = {.kind = "Top", .fields = {}, .columns = {}};
    return program.print(RenderItem(kTop, {{"devices", devices}, {"sessions", sessions.rows}}, view));
  }
  View plain = view;
  plain.fields.clear();
  plain.sort.clear();
  const auto above = RenderList({&TopDeviceSchema(), devices}, plain);
  if (!above.ok()) return above.status();
  const auto below = RenderList(std::move(sessions), view);
  if (!below.ok()) return below.status();
  return program.print(absl::StrCat(data->daemon, "\n", *above, "\n", *below));
}

// Ends a session while the screen lives on.
class Kill {
 public:
  explicit Kill(const Client& client) : client_(client) {}
  ~Kill() {
    if (answer_.valid()) answer_.wait();
  }
  bool running() const { return answer_.valid(); }
  void start(const TopRequest& request, TopModel& model) {
    if (running()) return model.tell("one is being ended already", true);
    session_ = request.session;
    v1::KillSessionRequest kill;
    kill.set_id(request.session);
    kill.set_reason(request.reason);
    kill.set_grace(absl::ToDoubleSeconds(kGrace));
    answer_ = std::async(std::launch::async,
                         [this, kill] { return client_.Call(&Stub::KillSession, kill, kGrace).status(); });
    model.tell(absl::StrCat("ending ", session_), false);
  }
  void look(TopModel& model) {
    if (!running() || answer_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    const absl::Status status = answer_.get();
    model.tell(status.ok() ? absl::StrCat("ended ", session_) : OneLine(status), !status.ok());
  }

 private:
  const Client& client_;
  std::string session_;
  std::future<absl::Status> answer_;
};

absl::Status Interact(const Program& program, const State& state) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  auto data = Look(*client);
  if (!data.ok()) return data.status();
  TopModel model(state.readonly, program.options.view.units);
  model.update(*std::move(data));
  auto screen = Screen::Open();
  if (!screen.ok()) return screen.status();
  Kill kill(*client);
  absl::Time next = absl::Now() + state.interval;
  for (;;) {
    (*screen)->draw(model.draw((*screen)->width(), (*screen)->height()));
    absl::Duration patience = std::max(next - absl::Now(), absl::ZeroDuration());
    if (kill.running()) patience = std::min(patience, kLongestWait);
    if (const auto press = (*screen)->read(patience)) {
      const TopRequest request = model.press(press->key, press->character);
      if (request.what == TopRequest::What::kQuit) return absl::OkStatus();
      if (request.what == TopRequest::What::kKill) kill.start(request, model);
    }
    kill.look(model);
    if (absl::Now() < next) continue;
    next = absl::Now() + state.interval;
    auto look = Look(*client);
    if (look.ok()) {
      model.update(*std::move(look));
    } else {
      model.tell(OneLine(look.status()), true);
    }
  }
}

absl::Status Top(const Program& program, const State& state) {
  const View& view = program.options.view;
  const bool table = view.format == Format::kTable || view.format == Format::kWide;
  if (state.once || !table || !program.terminal || ::isatty(STDIN_FILENO) != 1) return ShowOnce(program);
  return Interact(program, state);
}

}  // namespace

void AddTopCommand(CLI::App& app, Program& program) {
  const auto state = std::make_shared<State>();
  for (CLI::App* const top : {app.add_subcommand("top", "Short for session top"),
                              app.get_subcommand("session")->add_subcommand(
                                  "top", "Devices and sessions, kept up to date; ? lists its keys")}) {
    top->fallthrough();
    top->add_flag("--once", state->once, "Print them once, as without a terminal");
    top->add_flag("--readonly", state->readonly, "No key ends a session");
    top->add_option_function<std::string>(
           "--interval", [state](const std::string& text) { state->interval = ParseDuration(text); },
           "Between two looks (2s)")
        ->check(CheckDuration)
        ->type_name("DURATION");
    top->callback([&program, state] { program.run = [&program, state] { return Top(program, *state); }; });
  }
}

}  // namespace flagos::ctl
