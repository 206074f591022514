// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>

#include <cstdlib>
#include <string_view>

#include "server/ctl/doctor/check.h"

namespace flagos::ctl {
namespace {

using Stub = v1::Control::Stub;

constexpr double kLongBlocked = 10;  // seconds

// Whether a job would look for a daemon at all: without an endpoint and without the system's socket it starts its own.
bool WouldEmbed(const Program& program) {
  if (!program.options.socket.empty()) return false;
  const char* const endpoint = std::getenv("FLAGOS_ENDPOINT");
  const std::string_view text = endpoint == nullptr ? "" : endpoint;
  return text == "embedded" || (text.empty() && ProbeSocket(kSystemSocket).code() == absl::StatusCode::kUnavailable);
}

void CheckVersion(const Client& client, Checks& checks) {
  const std::string& version = client.version().version();
  const std::string found =
      absl::StrCat("flagosd ", version, ", pid ", client.version().pid(), ", protocol ", client.version().chosen());
  if (version == FLAGOS_VERSION) {
    checks.push_back({"version", Verdict::kOk, found, ""});
  } else {
    checks.push_back({"version", Verdict::kWarn, absl::StrCat(found, "; this is flagosctl ", FLAGOS_VERSION),
                      "they understand each other; use one version for both when you can"});
  }
}

void CheckDevices(const Client& client, Checks& checks) {
  const auto response = client.Call(&Stub::ListDevices, v1::ListDevicesRequest());
  if (!response.ok()) return checks.push_back(FailedCheck("devices", response.status()));
  if (response->devices().empty()) {
    return checks.push_back(
        {"devices", Verdict::kFail, "flagosd has none", "see its log, and [devices] of its configuration"});
  }
  if (const std::string& problem = response->devices(0).telemetry().problem(); !problem.empty()) {
    checks.push_back({"figures of devices", Verdict::kWarn, problem, "flagosd goes on without them; see its log"});
  }
  uint32_t warm = 0;
  for (const v1::Device& device : response->devices()) {
    warm += device.warm_executors();
    if (device.health() == v1::DEVICE_HEALTH_HEALTHY) continue;
    checks.push_back({absl::StrCat("device ", device.index()), Verdict::kFail,
                      absl::StrCat(device.name(), " is not healthy: its last executor did not start"),
                      "see flagosd's log"});
  }
  checks.push_back({"devices", Verdict::kOk,
                    absl::StrCat(response->devices_size(), " of vendor ", response->devices(0).vendor()), ""});
  if (warm > 0) {
    checks.push_back({"warm executors", Verdict::kOk, "the next job attaches at once", ""});
  } else {
    checks.push_back({"warm executors", Verdict::kWarn, "none is ready: the next job waits while one starts",
                      "wait until one is ready, or raise [pool] warm in flagosd's configuration"});
  }
}

void CheckSessions(const Client& client, Checks& checks) {
  v1::ListSessionsRequest request;
  request.set_all(true);
  const auto response = client.Call(&Stub::ListSessions, request);
  if (!response.ok()) return checks.push_back(FailedCheck("sessions", response.status()));
  size_t running = 0;
  for (const v1::Session& session : response->sessions()) {
    const std::string name = absl::StrCat("session ", session.id());
    if (session.state() == v1::SESSION_STATE_FAULTED) {
      checks.push_back({name, Verdict::kWarn, absl::StrCat("lost its executor: ", session.end_cause()),
                        absl::StrCat("see flagosctl session show ", session.id())});
    } else if (session.state() != v1::SESSION_STATE_ENDED) {
      ++running;
      if (!session.blocked().empty() && session.blocked_for() > kLongBlocked) {
        checks.push_back(
            {name, Verdict::kWarn,
             absl::StrCat("waits for ", FormatSeconds(session.blocked_for(), Units::kIec), ": ", session.blocked()),
             absl::StrCat("its executor may be stuck; the last operator it ran is ", session.last_operator())});
      }
    }
  }
  checks.push_back({"sessions", Verdict::kOk, absl::StrCat(running, " running"), ""});
}

}  // namespace

void CheckDaemon(const Program& program, Checks& checks) {
  if (WouldEmbed(program)) {
    checks.push_back({"endpoint", Verdict::kOk, "no flagosd runs here; each job starts one of its own", ""});
    return;
  }
  const auto client = program.connect();
  if (!client.ok()) return checks.push_back(FailedCheck("endpoint", client.status()));
  checks.push_back({"endpoint", Verdict::kOk, client->socket(), ""});
  CheckVersion(*client, checks);
  CheckRunning(static_cast<pid_t>(client->version().pid()), checks);
  CheckDevices(*client, checks);
  CheckSessions(*client, checks);
}

}  // namespace flagos::ctl
