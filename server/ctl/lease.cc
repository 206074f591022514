// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "proto/shm/arbiter.h"
#include "server/ctl/commands.h"
#include "server/ctl/message_json.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"
#include "server/daemon/config/memory_limit.h"

namespace flagos::ctl {
namespace {

using Stub = v1::Control::Stub;

struct State {
  std::vector<uint32_t> devices;
  std::string name;
  std::string memory;
  uint32_t weight = 0;
  uint32_t max_percent = 0;
  v1::ShareClass share_class = v1::SHARE_CLASS_UNSPECIFIED;
  std::optional<absl::Duration> watch;
  std::string id;
  absl::Duration ttl = absl::ZeroDuration();
  bool dry_run = false;
};

bool IsTable(const View& view) { return view.format == Format::kTable || view.format == Format::kWide; }

absl::Status Open(const Program& program, const State& state) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  v1::OpenLeaseRequest request;
  for (const uint32_t device : state.devices) request.add_devices(device);
  request.set_ttl(absl::ToDoubleSeconds(state.ttl));
  request.set_name(state.name);
  request.set_memory(state.memory);
  request.set_weight(state.weight);
  request.set_max_percent(state.max_percent);
  request.set_share_class(state.share_class);
  request.set_dry_run(state.dry_run);
  const auto response = client->Call(&Stub::OpenLease, request);
  if (!response.ok()) return response.status();
  if (state.dry_run && IsTable(program.options.view)) {
    return program.print(absl::StrCat(
        "would open a lease of ",
        state.devices.empty() ? "all devices" : absl::StrCat("devices ", absl::StrJoin(state.devices, ",")), "\n"));
  }
  return program.print(RenderItem(OpenedLeaseSchema(), ToJson(*response), program.options.view));
}

absl::StatusOr<Listing> ListLeases(const Client& client) {
  const auto response = client.Call(&Stub::ListLeases, v1::ListLeasesRequest());
  if (!response.ok()) return response.status();
  Listing listing{&LeaseSchema(), {}};
  for (const v1::Lease& lease : response->leases()) listing.rows.push_back(ToJson(lease));
  return listing;
}

// CLI11 takes a text for what is wrong.
std::string CheckMemory(const std::string& text) {
  const auto limit = daemon::ParseMemoryLimit(text);
  return limit.ok() ? std::string() : std::string(limit.status().message());
}

absl::Status Close(const Program& program, const State& state) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  v1::CloseLeaseRequest request;
  request.set_lease(state.id);
  request.set_dry_run(state.dry_run);
  const auto response = client->Call(&Stub::CloseLease, request);
  if (!response.ok()) return response.status();
  const View& view = program.options.view;
  if (!IsTable(view)) {
    return program.print(
        RenderItem(ClosedLeaseSchema(), {{"lease", state.id}, {"sessions_ended", response->sessions_ended()}}, view));
  }
  return program.print(absl::StrCat(
      state.dry_run ? "would close lease " : "closed lease ", state.id,
      state.dry_run ? "; sessions that would end: " : "; sessions ended: ", response->sessions_ended(), "\n"));
}

}  // namespace

void AddLeaseCommands(CLI::App& app, Program& program) {
  CLI::App* const noun =
      app.add_subcommand("lease", "Leases, under which processes attach")->require_subcommand(1)->fallthrough();
  const auto state = std::make_shared<State>();

  CLI::App* const open =
      noun->add_subcommand("open", "Opens a lease and prints its token, the job's FLAGOS_TOKEN")->fallthrough();
  open->add_option("--devices", state->devices, "Devices it may use (all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("0,1");
  open->add_option("--name", state->name, "For display")->type_name("TEXT");
  open->add_option_function<std::string>(
          "--ttl", [state](const std::string& text) { state->ttl = ParseDuration(text); },
          "Ends by itself after this time once no session is left in it (flagosd's default)")
      ->check(CheckDuration)
      ->type_name("DURATION");
  open->add_option("--memory", state->memory,
                   "What all its sessions together may hold of each device (flagosd's [quota] default_memory)")
      ->check(CheckMemory)
      ->type_name("4GiB|25%|none");
  open->add_option("--weight", state->weight, "Of its share of the devices' time, beside others of its class (100)")
      ->check(CLI::Range(1u, kMaxWeight))
      ->type_name("N");
  open->add_option("--max", state->max_percent, "Percent of a device's time that it gets at most (100)")
      ->check(CLI::Range(1u, 100u))
      ->type_name("PERCENT");
  static const std::map<std::string, v1::ShareClass> kClasses = {
      {"rt", v1::SHARE_CLASS_RT}, {"normal", v1::SHARE_CLASS_NORMAL}, {"batch", v1::SHARE_CLASS_BATCH}};
  open->add_option("--class", state->share_class, "Who goes first: rt, then normal, then batch (normal)")
      ->transform(CLI::CheckedTransformer(kClasses))
      ->type_name("rt|normal|batch");
  open->add_flag("--dry-run", state->dry_run, "Only say whether it could be opened");
  open->callback([&program, state] { program.run = [&program, state] { return Open(program, *state); }; });

  CLI::App* const list = noun->add_subcommand("list", "All leases, with what they hold")->fallthrough();
  AddWatch(*list, state->watch);
  list->callback(
      [&program, state] { program.run = [&program, state] { return PrintList(program, state->watch, ListLeases); }; });

  CLI::App* const close = noun->add_subcommand("close", "Closes a lease and ends its sessions")->fallthrough();
  close->add_option("lease", state->id, "Its name as lease open printed it")->required();
  close->add_flag("--dry-run", state->dry_run, "Only say how many sessions would end");
  close->callback([&program, state] { program.run = [&program, state] { return Close(program, *state); }; });
}

}  // namespace flagos::ctl
