// SPDX-License-Identifier: Apache-2.0
// Commands against a control plane with fixed answers, over a real unix socket.
#include <absl/time/clock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "proto/shm/memfd.h"
#include "proto/wire/records.h"
#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "tests/unit/ctl_sessions.h"

namespace flagos::ctl {
namespace {

using grpc::ServerContext;
using grpc::Status;
using grpc::StatusCode;

class FixedControl final : public v1::Control::Service {
 public:
  Status GetVersion(ServerContext*, const v1::GetVersionRequest* request, v1::GetVersionResponse* response) override {
    if (incompatible) return {StatusCode::FAILED_PRECONDITION, "no protocol version in common\nwhy\nadvice"};
    if (slow) absl::SleepFor(absl::Seconds(1));
    EXPECT_EQ(request->supported().max(), kProtocolVersionMax);
    response->set_version("9.9.9");
    response->mutable_protocol()->set_min(1);
    response->mutable_protocol()->set_max(3);
    response->set_chosen(1);
    response->add_features("base");
    response->set_pid(77);
    response->set_uptime(3600);
    return Status::OK;
  }
  Status ListDevices(ServerContext*, const v1::ListDevicesRequest*, v1::ListDevicesResponse* response) override {
    *response->add_devices() = testing::DeviceOf(0);
    *response->add_devices() = testing::DeviceOf(1);
    return Status::OK;
  }
  Status ListSessions(ServerContext*, const v1::ListSessionsRequest* request,
                      v1::ListSessionsResponse* response) override {
    *response->add_sessions() = testing::RunningSession();
    if (request->all()) *response->add_sessions() = testing::FaultedSession();
    return Status::OK;
  }
  Status ShowSession(ServerContext*, const v1::ShowSessionRequest* request,
                     v1::ShowSessionResponse* response) override {
    if (request->id() != "s1" && request->id() != "s") {
      return {StatusCode::NOT_FOUND, "there is no session " + request->id() + "\nit may have ended\nsee flagosctl ps"};
    }
    *response->mutable_session() = testing::RunningSession();
    return Status::OK;
  }
  Status WatchSessions(ServerContext*, const v1::WatchSessionsRequest* request,
                       grpc::ServerWriter<v1::SessionEvent>* writer) override {
    interval = request->interval();
    v1::SessionEvent event;
    event.set_kind(v1::SessionEvent::KIND_PRESENT);
    *event.mutable_session() = testing::RunningSession();
    writer->Write(event);
    event.set_kind(v1::SessionEvent::KIND_ENDED);
    *event.mutable_session() = testing::FaultedSession();
    writer->Write(event);
    return Status::OK;
  }
  Status KillSession(ServerContext* context, const v1::KillSessionRequest* request,
                     v1::KillSessionResponse* response) override {
    kill_deadline = absl::FromChrono(context->deadline());
    if (protect) return {StatusCode::PERMISSION_DENIED, "session s1 is alice's\nonly she and root may end it\nask her"};
    kill = *request;
    *response->mutable_session() = testing::RunningSession();
    response->mutable_session()->set_state(v1::SESSION_STATE_ENDED);
    return Status::OK;
  }
  Status OpenLease(ServerContext*, const v1::OpenLeaseRequest* request, v1::OpenLeaseResponse* response) override {
    lease = *request;
    response->set_lease("l7");
    response->set_token(std::string(64, 'a'));
    response->set_folder("/run/flagos/containers/l7/mount");
    return Status::OK;
  }
  Status ListLeases(ServerContext*, const v1::ListLeasesRequest*, v1::ListLeasesResponse* response) override {
    v1::Lease& one = *response->add_leases();
    one.set_lease("l7");
    one.set_name("job");
    one.set_owner("alice");
    one.set_sessions(2);
    one.set_memory_limit("25%");
    one.set_memory_used(3ull << 30);
    one.set_memory_quota(4ull << 30);
    one.set_weight(50);
    one.set_max_percent(100);
    one.set_share_class(v1::SHARE_CLASS_BATCH);
    return Status::OK;
  }
  Status CloseLease(ServerContext*, const v1::CloseLeaseRequest* request, v1::CloseLeaseResponse* response) override {
    if (request->lease() != "l7") return {StatusCode::NOT_FOUND, "there is no lease " + request->lease()};
    close_dry_run = request->dry_run();
    response->set_sessions_ended(2);
    return Status::OK;
  }

  bool incompatible = false;
  bool slow = false;
  bool protect = false;
  bool close_dry_run = false;
  double interval = -1;
  v1::KillSessionRequest kill;
  absl::Time kill_deadline;
  v1::OpenLeaseRequest lease;
};

class Command : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/flagos-ctl-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder = name;
    socket = folder + "/flagosd.sock";
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(&control);
    server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
  }
  void TearDown() override {
    if (server) server->Shutdown();
    std::filesystem::remove_all(folder);
  }

  // Runs a command; `out` and `err` are what it wrote.
  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", socket});
    std::ostringstream to_out, to_err;
    const int code = ctl::Run(arguments, to_out, to_err, false);
    out = to_out.str();
    err = to_err.str();
    return code;
  }

  FixedControl control;
  std::unique_ptr<grpc::Server> server;
  std::string folder, socket, out, err;
};

TEST_F(Command, PsListsSessions) {
  EXPECT_EQ(run({"ps", "--fields", "sid,owner,state"}), 0) << err;
  EXPECT_EQ(out, "SID  OWNER  STATE\ns1   alice  RUNNING\n");
  EXPECT_EQ(run({"session", "list", "--all", "--no-headers", "--fields", "sid"}), 0);
  EXPECT_EQ(out, "s1\ns12\n");
}

TEST_F(Command, PsOfAnUnknownColumnIsAUsageError) {
  EXPECT_EQ(run({"ps", "--fields", "colour"}), static_cast<int>(ExitCode::kUsage));
  EXPECT_NE(err.find("choose from"), std::string::npos);
}

TEST_F(Command, DevicesAreListedAndShown) {
  EXPECT_EQ(run({"device", "list", "--fields", "dev,health", "--no-headers"}), 0);
  EXPECT_EQ(out, "0  HEALTHY\n1  HEALTHY\n");
  EXPECT_EQ(run({"device", "show", "1", "-o", "json"}), 0);
  EXPECT_EQ(Json::parse(out).at("memory_total"), 16ull << 30);
  EXPECT_EQ(run({"device", "show", "5"}), static_cast<int>(ExitCode::kNotFound));
}

TEST_F(Command, SessionShowTakesAPrefix) {
  EXPECT_EQ(run({"session", "show", "s", "-o", "json"}), 0) << err;
  EXPECT_EQ(Json::parse(out).at("kind"), "Session");
  EXPECT_EQ(Json::parse(out).at("id"), "s1");
  EXPECT_EQ(run({"session", "show", "s9"}), static_cast<int>(ExitCode::kNotFound));
  EXPECT_EQ(err, "flagosctl: there is no session s9\n  it may have ended\n  see flagosctl ps\n");
}

TEST_F(Command, KillTellsTheReason) {
  EXPECT_EQ(run({"session", "kill", "s", "--reason", "maintenance", "--grace", "500ms"}), 0) << err;
  EXPECT_EQ(control.kill.id(), "s1") << "the session that the prefix meant, whatever starts meanwhile";
  EXPECT_EQ(control.kill.reason(), "maintenance");
  EXPECT_EQ(control.kill.grace(), 0.5);
  EXPECT_EQ(out, "ended session s1 of alice (train.py, \"fast\", host:4711)\n");
}

TEST_F(Command, KillWaitsForTheGraceOnTopOfTheTimeout) {
  const absl::Time before = absl::Now();
  EXPECT_EQ(run({"session", "kill", "s1", "--reason", "stuck", "--grace", "20m", "--timeout", "10m"}), 0) << err;
  EXPECT_GE(control.kill_deadline, before + absl::Minutes(29));
}

TEST_F(Command, KillDryRunKillsNothing) {
  EXPECT_EQ(run({"session", "kill", "s1", "--reason", "x", "--dry-run"}), 0);
  EXPECT_EQ(control.kill.id(), "");
  EXPECT_EQ(out, "would end session s1 of alice (train.py, \"fast\", host:4711)\n");
  EXPECT_EQ(run({"session", "kill", "s1", "--reason", "x", "--dry-run", "-o", "json"}), 0);
  EXPECT_EQ(control.kill.id(), "");
  EXPECT_EQ(Json::parse(out).at("id"), "s1");
}

TEST_F(Command, KillTakesSeveral) {
  EXPECT_EQ(run({"session", "kill", "s", "s1", "--reason", "x"}), 0) << err;
  EXPECT_EQ(out, "ended session s1 of alice (train.py, \"fast\", host:4711)\n") << "once, though named twice";
  EXPECT_EQ(run({"session", "kill", "s1", "s9", "--reason", "x"}), static_cast<int>(ExitCode::kPartial));
  EXPECT_EQ(out, "ended session s1 of alice (train.py, \"fast\", host:4711)\n");
  EXPECT_EQ(
      err,
      "flagosctl: 1 of 2 sessions cannot be ended\n  s9: there is no session s9, it may have ended, see flagosctl "
      "ps\n  see flagosctl ps\n");
  EXPECT_EQ(run({"session", "kill", "s8", "s9", "--reason", "x"}), static_cast<int>(ExitCode::kNotFound));
  EXPECT_EQ(out, "");
  EXPECT_EQ(run({"session", "kill", "s1", "s9", "--reason", "x", "-o", "json"}), static_cast<int>(ExitCode::kPartial));
  EXPECT_EQ(Json::parse(out).at("items").size(), 1u);
  control.kill.Clear();
  EXPECT_EQ(run({"session", "kill", "s1", "s9", "--reason", "x", "--dry-run"}), static_cast<int>(ExitCode::kPartial));
  EXPECT_EQ(control.kill.id(), "");
}

TEST_F(Command, LeasesHaveDryRuns) {
  EXPECT_EQ(run({"lease", "open", "--devices", "0,1", "--dry-run"}), 0) << err;
  EXPECT_EQ(out, "would open a lease of devices 0,1\n");
  EXPECT_TRUE(control.lease.dry_run());
  EXPECT_EQ(run({"lease", "close", "l7", "--dry-run"}), 0) << err;
  EXPECT_EQ(out, "would close lease l7; sessions that would end: 2\n");
  EXPECT_TRUE(control.close_dry_run);
  EXPECT_EQ(run({"lease", "close", "l7"}), 0);
  EXPECT_FALSE(control.close_dry_run);
}

TEST_F(Command, KillMayBeDenied) {
  control.protect = true;
  EXPECT_EQ(run({"session", "kill", "s1", "--reason", "x"}), static_cast<int>(ExitCode::kDenied));
  EXPECT_EQ(out, "");
}

TEST_F(Command, WatchPrintsALineAnEvent) {
  EXPECT_EQ(run({"session", "watch", "--fields", "event,sid,state"}), 0) << err;
  EXPECT_EQ(out, "EVENT    SID    STATE\nPRESENT  s1     RUNNING\nENDED    s12    FAULTED\n");
  EXPECT_EQ(control.interval, 0);
  EXPECT_EQ(run({"session", "watch", "-o", "json", "--interval", "2s"}), 0) << err;
  EXPECT_EQ(control.interval, 2);
  std::istringstream lines(out);
  std::string line;
  std::vector<std::string> events;
  while (std::getline(lines, line)) events.push_back(Json::parse(line).at("event"));
  EXPECT_EQ(events, (std::vector<std::string>{"PRESENT", "ENDED"}));
}

TEST_F(Command, LeasesAreOpenedAndClosed) {
  EXPECT_EQ(run({"lease", "open", "--devices", "0,1", "--ttl", "10m", "--name", "night", "--memory", "4GiB", "--weight",
                 "50", "--max", "40", "--class", "batch"}),
            0)
      << err;
  EXPECT_EQ(out, "lease   l7\ntoken   " + std::string(64, 'a') + "\nfolder  /run/flagos/containers/l7/mount\n");
  EXPECT_EQ(control.lease.devices_size(), 2);
  EXPECT_EQ(control.lease.ttl(), 600);
  EXPECT_EQ(control.lease.memory(), "4GiB");
  EXPECT_EQ(control.lease.weight(), 50u);
  EXPECT_EQ(control.lease.max_percent(), 40u);
  EXPECT_EQ(control.lease.share_class(), v1::SHARE_CLASS_BATCH);
  EXPECT_EQ(run({"lease", "open", "--memory", "4"}), static_cast<int>(ExitCode::kUsage));
  EXPECT_EQ(run({"lease", "list"}), 0) << err;
  EXPECT_EQ(out,
            "LEASE  NAME  OWNER  SESS  MEM/QUOTA  LIMIT  CLASS  WEIGHT  MAX%\n"
            "l7     job   alice     2  3GiB/4GiB  25%    BATCH      50   100\n");
  EXPECT_EQ(run({"lease", "close", "l7"}), 0);
  EXPECT_EQ(out, "closed lease l7; sessions ended: 2\n");
  EXPECT_EQ(run({"lease", "close", "l7", "-o", "csv"}), 0);
  EXPECT_EQ(out, "lease,sessions_ended\r\nl7,2\r\n");
  EXPECT_EQ(run({"lease", "close", "l8"}), static_cast<int>(ExitCode::kNotFound));
}

TEST_F(Command, VersionTellsBothSides) {
  EXPECT_EQ(run({"version", "-o", "json"}), 0) << err;
  const Json items = Json::parse(out).at("items");
  EXPECT_EQ(items.at(0).at("part"), "flagosctl");
  EXPECT_EQ(items.at(1).at("version"), "9.9.9");
  EXPECT_EQ(items.at(1).at("protocol"), "1-3");
  EXPECT_EQ(items.at(1).at("features"), Json({"base"}));
}

TEST_F(Command, DoctorLooksAtTheDaemon) {
  run({"doctor", "-o", "json"});
  const Json items = Json::parse(out).at("items");
  const auto result = [&](const std::string& name) {
    for (const Json& item : items) {
      if (item.at("check") == name) return item.at("result").get<std::string>();
    }
    return std::string("absent");
  };
  EXPECT_EQ(result("endpoint"), "ok");
  EXPECT_EQ(result("version"), "warn") << "9.9.9 is not ours";
  EXPECT_EQ(result("devices"), "ok");
  EXPECT_EQ(result("warm executors"), "ok");
  EXPECT_EQ(result("session s12"), "warn");
}

TEST_F(Command, DoctorFailsWhereTheDaemonDoes) {
  server->Shutdown();
  server.reset();
  EXPECT_EQ(run({"doctor"}), static_cast<int>(ExitCode::kGeneric));
  EXPECT_NE(out.find("fail  endpoint"), std::string::npos) << out;
  EXPECT_EQ(err, "");
}

TEST_F(Command, AVersionMismatchIsRefused) {
  control.incompatible = true;
  EXPECT_EQ(run({"ps"}), static_cast<int>(ExitCode::kRefused));
  EXPECT_EQ(err, "flagosctl: no protocol version in common\n  why\n  advice\n");
  EXPECT_EQ(run({"version"}), static_cast<int>(ExitCode::kRefused));
  EXPECT_NE(out.find("flagosctl"), std::string::npos) << "its own version is told all the same";
}

TEST_F(Command, ASlowDaemonIsNotWaitedForLongerThanTold) {
  control.slow = true;
  EXPECT_EQ(run({"ps", "--timeout", "100ms"}), static_cast<int>(ExitCode::kTimedOut));
  EXPECT_NE(err.find("did not answer within 100ms"), std::string::npos) << err;
}

TEST_F(Command, ADaemonThatAcceptsNobodyIsNotWaitedForLongerThanTold) {
  socket = folder + "/full.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof address.sun_path - 1);
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<UniqueFd> waiting;  // as many as the backlog takes
  do {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  } while (::connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  EXPECT_EQ(run({"ps", "--timeout", "100ms"}), static_cast<int>(ExitCode::kTimedOut));
  EXPECT_NE(err.find("accepted no connection within 100ms"), std::string::npos) << err;
}

TEST_F(Command, AnAbsentDaemonIsUnreachable) {
  server->Shutdown();
  server.reset();
  EXPECT_EQ(run({"ps"}), static_cast<int>(ExitCode::kUnreachable));
  EXPECT_NE(err.find(socket), std::string::npos);
  std::filesystem::remove(socket);
  EXPECT_EQ(run({"ps"}), static_cast<int>(ExitCode::kUnreachable));
  EXPECT_NE(err.find("no such socket"), std::string::npos) << err;
  socket = folder;
  EXPECT_EQ(run({"ps"}), static_cast<int>(ExitCode::kUnreachable));
  EXPECT_NE(err.find("no socket"), std::string::npos) << err;
}

}  // namespace
}  // namespace flagos::ctl
