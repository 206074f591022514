// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/message_json.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"

namespace flagos::ctl {
namespace {

absl::StatusOr<Listing> ListDevices(const Client& client) {
  const auto response = client.Call(&v1::Control::Stub::ListDevices, v1::ListDevicesRequest());
  if (!response.ok()) return response.status();
  Listing listing{&DeviceSchema(), {}};
  for (const v1::Device& device : response->devices()) listing.rows.push_back(ToJson(device));
  return listing;
}

absl::Status ShowDevice(const Program& program, uint32_t index) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  const auto devices = ListDevices(*client);
  if (!devices.ok()) return devices.status();
  for (const Json& row : devices->rows) {
    if (row.at("index") == index) return program.print(RenderItem(DeviceSchema(), row, program.options.view));
  }
  return Failure(absl::StatusCode::kNotFound, absl::StrCat("there is no device ", index),
                 absl::StrCat("flagosd has ", devices->rows.size(), " devices"), "see flagosctl device list");
}

}  // namespace

void AddDeviceCommands(CLI::App& app, Program& program) {
  CLI::App* const noun =
      app.add_subcommand("device", "Devices that flagosd serves")->require_subcommand(1)->fallthrough();

  struct State {
    std::optional<absl::Duration> watch;
    uint32_t index = 0;
  };
  const auto state = std::make_shared<State>();
  CLI::App* const list = noun->add_subcommand("list", "All devices, with their use")->fallthrough();
  AddWatch(*list, state->watch);
  list->callback(
      [&program, state] { program.run = [&program, state] { return PrintList(program, state->watch, ListDevices); }; });

  CLI::App* const show = noun->add_subcommand("show", "Everything about one device")->fallthrough();
  show->add_option("index", state->index, "Its number in the list")->required();
  show->callback([&program, state] { program.run = [&program, state] { return ShowDevice(program, state->index); }; });
}

}  // namespace flagos::ctl
