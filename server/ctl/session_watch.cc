// SPDX-License-Identifier: Apache-2.0
#include <absl/time/clock.h>

#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/message_json.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"
#include "server/ctl/session_row.h"

namespace flagos::ctl {
namespace {

// A line of a table or of CSV: the session with what happened to it.
Json EventRow(const v1::SessionEvent& event, absl::Time now) {
  Json row = {{"event", ToJson(event).at("kind")},
              {"time", FormatTime(absl::ToDoubleSeconds(now - absl::UnixEpoch()))}};
  row.update(SessionRow(event.session(), now));
  return row;
}

absl::StatusOr<std::string> Render(const v1::SessionEvent& event, const View& view) {
  const absl::Time now = absl::Now();
  const Json row = EventRow(event, now);
  if (view.format != Format::kJson && view.format != Format::kYaml)
    return RenderList({&SessionEventSchema(), {row}}, view);
  return RenderItem(
      SessionEventSchema(),
      {{"event", row.at("event")}, {"time", row.at("time")}, {"session", SessionRow(event.session(), now)}}, view);
}

}  // namespace

absl::Status WatchSessions(const Program& program, absl::Duration interval) {
  const auto client = program.connect();
  if (!client.ok()) return client.status();
  View view = program.options.view;
  view.one_line = true;
  v1::WatchSessionsRequest request;
  request.set_interval(absl::ToDoubleSeconds(interval));
  grpc::ClientContext context;
  const auto reader = client->stub().WatchSessions(&context, request);
  v1::SessionEvent event;
  while (reader->Read(&event)) {
    absl::Status printed = program.print(Render(event, view));
    view.headers = false;
    if (printed.ok()) continue;
    context.TryCancel();
    static_cast<void>(reader->Finish());
    return printed;
  }
  return client->Explain(reader->Finish());
}

}  // namespace flagos::ctl
