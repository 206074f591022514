// SPDX-License-Identifier: Apache-2.0
// The core of flagosd on the test's thread, with real executors of the null vendor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proto/socket/unix_socket.h"
#include "proto/wire/records.h"
#include "server/common/strings.h"
#include "server/daemon/sessions/supervisor.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"
#include "tests/support/run_loop.h"
#include "tests/support/session_memory.h"

namespace flagos::daemon {
namespace {

using ::testing::HasSubstr;

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() : loop_(*EventLoop::Create()) {
    config_.devices.vendor = "null";
    config_.devices.count = 4;
    config_.executor = testing::BuildFolder() + "/bin/flagos-executor";
    config_.vendor_dir = testing::BuildFolder() + "/vendors";
  }
  void start() {
    supervisor_ = std::make_unique<Supervisor>(*loop_, config_);
    supervisor_->start();
  }
  bool run_until(const std::function<bool()>& condition) { return testing::RunUntil(*loop_, condition); }
  bool devices_known() {
    return run_until([this] { return supervisor_->devices().known(); });
  }
  // Has a client ask; returns its end of the connection.
  UniqueFd ask(const AttachRequest& request) {
    auto [ours, theirs] = testing::Must(UnixPair());
    auto connection = ClientConnection::From(std::move(theirs));
    EXPECT_TRUE(connection.ok()) << MessageOf(connection.status());
    supervisor_->attach(request, {kProtocolVersionMax, kFeatures}, *std::move(connection));
    return std::move(ours);
  }
  UniqueFd ask(AttachKind kind) { return ask(MakeAttachRequest(kind)); }
  // For a session on the first device, for a client of another user. REQUIRES to be root.
  UniqueFd ask_as(uid_t user) {
    AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
    request.device_mask = 1;
    EXPECT_EQ(::seteuid(user), 0);
    auto [ours, theirs] = testing::Must(UnixPair());  // remembers who made it
    EXPECT_EQ(::seteuid(0), 0);
    supervisor_->attach(request, {kProtocolVersionMax, kFeatures}, *ClientConnection::From(std::move(theirs)));
    return std::move(ours);
  }
  // An executor that is never ready.
  void use_hanging_executor() {
    config_.executor = folder_.write("executor", "#!/bin/sh\nexec sleep 60\n");
    ::chmod(config_.executor.c_str(), 0755);
  }
  // What is there of the reply.
  static std::optional<AttachReply> ReplyTo(int client) {
    AttachReply reply;
    std::vector<UniqueFd> fds;
    const Error error = ReceiveRecord(client, std::as_writable_bytes(std::span(&reply, 1)), &fds, 0);
    return error.ok() ? std::optional(reply) : std::nullopt;
  }
  Session& session() { return *supervisor_->sessions().begin()->second; }

  testing::TemporaryFolder folder_;
  Config config_;
  const std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Supervisor> supervisor_;
  const Caller caller_{::getuid()};
};

TEST_F(SupervisorTest, EndsNothingThatItLetGo) {
  start();
  const UniqueFd client = ask(AttachKind::kOpen);
  ASSERT_TRUE(run_until([&] { return session().state() == SessionState::kRunning; }));
  const pid_t executor = session().executor_pid();
  const auto lease = supervisor_->open_lease(caller_, "job", {}, 0);
  ASSERT_TRUE(lease.ok()) << MessageOf(lease.status());
  const std::string lease_id = (*lease)->id;
  bool stopped = false;
  supervisor_->stop(Supervisor::Stop::kLetGo, [&] { stopped = true; });
  bool told = false;
  const absl::Status killed = supervisor_->kill(caller_, "s1", 1, "late", [&](const auto&) { told = true; });
  EXPECT_TRUE(absl::IsUnavailable(killed)) << killed;
  EXPECT_TRUE(absl::IsUnavailable(supervisor_->close_lease(caller_, lease_id).status()));
  EXPECT_TRUE(absl::IsUnavailable(supervisor_->open_lease(caller_, "late", {}, 0).status()));
  EXPECT_TRUE(run_until([&] { return stopped; }));
  EXPECT_FALSE(told);
  EXPECT_FALSE(testing::IsGone(executor));
  ::kill(executor, SIGKILL);
}

TEST_F(SupervisorTest, AnswersAKillThatItsStopOvertakes) {
  start();
  const UniqueFd client = ask(AttachKind::kOpen);
  ASSERT_TRUE(run_until([&] { return session().state() == SessionState::kRunning; }));
  ::kill(session().executor_pid(), SIGSTOP);
  std::optional<SessionState> seen;
  ASSERT_TRUE(supervisor_
                  ->kill(caller_, "s1", 3600, "stuck",
                         [&](absl::StatusOr<const Session*> ended) {
                           if (ended.ok()) seen = (*ended)->state();
                         })
                  .ok());
  bool stopped = false;
  supervisor_->stop(Supervisor::Stop::kLetGo, [&] { stopped = true; });
  EXPECT_TRUE(run_until([&] { return stopped; }));
  EXPECT_EQ(seen, SessionState::kEnded);
}

TEST_F(SupervisorTest, AClientWhoseSessionIsKilledWhileItAttachesIsToldWhy) {
  start();
  ASSERT_TRUE(devices_known());
  const std::vector<pid_t> warm = testing::ChildrenOf(::getpid());
  for (const pid_t executor : warm) ::kill(executor, SIGSTOP);  // it takes no session
  const UniqueFd client = ask(AttachKind::kOpen);
  ASSERT_TRUE(run_until([&] { return session().state() == SessionState::kAttaching; }));
  ASSERT_TRUE(supervisor_->kill(caller_, "s1", 3600, "maintenance", [](const auto&) {}).ok());
  const auto reply = ReplyTo(client.get());
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, static_cast<uint16_t>(ErrorCode::kUnavailable));
  EXPECT_THAT(ReadText(reply->message), HasSubstr("maintenance"));
}

TEST_F(SupervisorTest, OneUserHasSoManyWaitForTheDevicesAndNoMore) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else's client";
  config_.session.max_per_user = 2;
  use_hanging_executor();
  start();
  UniqueFd first = ask_as(4711);
  const UniqueFd second = ask_as(4711);
  const auto refused = ReplyTo(ask_as(4711).get());
  ASSERT_TRUE(refused.has_value());
  EXPECT_THAT(ReadText(refused->message), HasSubstr("max_per_user"));
  const UniqueFd other = ask_as(4712);
  EXPECT_FALSE(ReplyTo(other.get()).has_value()) << "another user's waits";

  first.reset();  // and gives its place to the next
  UniqueFd next;
  EXPECT_TRUE(run_until([&] {
    next = ask_as(4711);
    return !ReplyTo(next.get()).has_value();
  }));
  supervisor_->stop(Supervisor::Stop::kLetGo, [] {});
  for (const int held : {second.get(), other.get(), next.get()}) {
    const auto reply = ReplyTo(held);
    ASSERT_TRUE(reply.has_value());
    EXPECT_THAT(ReadText(reply->message), HasSubstr("flagosd is stopping"));
  }
}

TEST_F(SupervisorTest, WhoAsksForTheDevicesIsToldThatTheyAreNotKnownYet) {
  use_hanging_executor();
  start();
  const UniqueFd client = ask(AttachKind::kDevices);
  std::optional<AttachReply> reply;
  ASSERT_TRUE(run_until([&] { return (reply = ReplyTo(client.get())).has_value(); }));
  EXPECT_EQ(reply->status, static_cast<uint16_t>(ErrorCode::kOk));
  EXPECT_EQ(reply->device_count, 0u);
  EXPECT_EQ(ReadText(reply->vendor), "");
}

TEST_F(SupervisorTest, ServesWhoWaitedForTheDevices) {
  start();
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  request.device_mask = 0b10;
  const UniqueFd devices = ask(AttachKind::kDevices), session = ask(request);
  EXPECT_TRUE(supervisor_->sessions().empty());
  ASSERT_TRUE(devices_known());
  const auto reply = ReplyTo(devices.get());
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->device_count, 4u);
  ASSERT_EQ(supervisor_->sessions().size(), 1u);
  EXPECT_EQ(this->session().devices(), DeviceSet{1});
}

TEST_F(SupervisorTest, OneUserOpensSoManyLeasesAndNoMore) {
  config_.session.max_leases_per_user = 2;
  start();
  ASSERT_TRUE(devices_known());
  const Caller user{4711}, other{4712};
  const auto first = supervisor_->open_lease(user, "a", {0}, 0);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(supervisor_->open_lease(user, "b", {1}, 0).ok());
  const absl::Status refused = supervisor_->open_lease(user, "c", {2}, 0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(MessageOf(refused), HasSubstr("max_leases_per_user"));
  EXPECT_TRUE(supervisor_->open_lease(other, "c", {2}, 0).ok());
  EXPECT_TRUE(supervisor_->open_lease(Caller{0}, "c", {2}, 0).ok());
  ASSERT_TRUE(supervisor_->close_lease(user, std::string((*first)->id)).ok());
  EXPECT_TRUE(supervisor_->open_lease(user, "c", {2}, 0).ok());
}

TEST_F(SupervisorTest, RefusesTextsThatAreTooLongToKeep) {
  start();
  ASSERT_TRUE(devices_known());
  EXPECT_THAT(MessageOf(supervisor_->open_lease(caller_, std::string(129, 'x'), {}, 0).status()),
              HasSubstr("at most 128 bytes, and this one 129"));
  const UniqueFd client = ask(AttachKind::kOpen);
  const absl::Status refused = supervisor_->kill(caller_, "s1", 1, std::string(301, 'x'), [](const auto&) {});
  EXPECT_THAT(MessageOf(refused), HasSubstr("at most 300 bytes"));
}

TEST(DeviceTableTest, TellsDevicesInTheOrderOfALease) {
  DeviceTable table({});
  std::vector<DeviceRecord> records(3);
  for (size_t i = 0; i < records.size(); ++i) records[i].total_memory = i;
  table.update({}, "null", records);
  const auto memory = [&](const DeviceSet& devices) {
    std::vector<uint64_t> bytes;
    for (const DeviceRecord& record : table.records(devices)) bytes.push_back(record.total_memory);
    return bytes;
  };
  EXPECT_THAT(memory({2, 0}), ::testing::ElementsAre(2, 0));
  EXPECT_THAT(memory({}), ::testing::ElementsAre(0, 1, 2));
}

TEST(RefusalTest, KeepsWhatFailedAndWhy) {
  const AttachReply reply = MakeRefusal(
      MakeError(ErrorCode::kUnavailable, "the executor ended:\n" + std::string(2000, '-') + "\nthe reason"));
  EXPECT_EQ(reply.status, static_cast<uint16_t>(ErrorCode::kUnavailable));
  EXPECT_THAT(ReadText(reply.message), ::testing::StartsWith("the executor ended:\n"));
  EXPECT_THAT(ReadText(reply.message), ::testing::EndsWith("\nthe reason"));
}

}  // namespace
}  // namespace flagos::daemon
