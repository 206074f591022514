// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/session_row.h"

#include <algorithm>

#include "server/ctl/message_json.h"

namespace flagos::ctl {
namespace {

Json Time(double unix_seconds) { return unix_seconds > 0 ? Json(FormatTime(unix_seconds)) : Json(); }

}  // namespace

Json SessionRow(const v1::Session& session, absl::Time now) {
  Json row = ToJson(session);
  const double end = session.ended() > 0 ? session.ended() : absl::ToDoubleSeconds(now - absl::UnixEpoch());
  row["age"] = std::max(0.0, end - session.started());
  row["started"] = Time(session.started());
  row["ended"] = Time(session.ended());
  return row;
}

}  // namespace flagos::ctl
