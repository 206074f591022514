// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include "proto/wire/attach.h"
#include "proto/wire/records.h"
#include "server/ctl/commands.h"
#include "server/ctl/message_json.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"

namespace flagos::ctl {
namespace {

std::string Range(uint32_t min, uint32_t max) { return min == max ? absl::StrCat(min) : absl::StrCat(min, "-", max); }

Json OwnVersion() {
  Json features = Json::array();
  for (const FeatureName& feature : kFeatureNames) features.push_back(feature.name);
  return {{"part", "flagosctl"},
          {"version", FLAGOS_VERSION},
          {"protocol", Range(kProtocolVersionMin, kProtocolVersionMax)},
          {"features", features}};
}

Json DaemonVersion(const Client& client) {
  const v1::GetVersionResponse& version = client.version();
  return {{"part", "flagosd"},
          {"version", version.version()},
          {"protocol", Range(version.protocol().min(), version.protocol().max())},
          {"features", ToJson(version).at("features")},
          {"socket", client.socket()},
          {"pid", version.pid()},
          {"uptime", version.uptime()}};
}

// Tells its own version even where no daemon answers; the exit code then says so.
absl::Status ShowVersion(const Program& program) {
  Listing listing{&VersionSchema(), {OwnVersion()}};
  const auto client = program.connect();
  if (client.ok()) listing.rows.push_back(DaemonVersion(*client));
  const absl::Status printed = program.print(RenderList(std::move(listing), program.options.view));
  return printed.ok() ? client.status() : printed;
}

}  // namespace

void AddVersionCommand(CLI::App& app, Program& program) {
  app.add_subcommand("version", "Versions, protocols and features of this program and of flagosd")
      ->fallthrough()
      ->callback([&program] { program.run = [&program] { return ShowVersion(program); }; });
}

}  // namespace flagos::ctl
