// SPDX-License-Identifier: Apache-2.0
// A flagosd that follows another one: what it takes over, and from whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "flagos/v1/state.pb.h"
#include "proto/socket/unix_socket.h"
#include "server/common/executor_channel.h"
#include "tests/support/control_client.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"

namespace flagos::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

bool Answers(AttachedClient& client) {
  return client.session().request({.kind = RecordKind::kListOperators}).has_value();
}

DaemonProcess::Options After(const DaemonProcess& daemon) {
  return {.vendor = "null", .arguments = {"--socket", daemon.socket()}};
}

std::string StateOf(const DaemonProcess& daemon) { return daemon.socket() + ".state"; }

v1::Session Show(const DaemonProcess& daemon, const std::string& id) { return ControlClient(daemon.socket()).show(id); }

bool Runs(const DaemonProcess& daemon, const std::string& id) {
  for (const v1::Session& session : ControlClient(daemon.socket()).list(false)) {
    if (session.id() != id) continue;
    return session.state() == v1::SESSION_STATE_RUNNING || session.state() == v1::SESSION_STATE_IDLE;
  }
  return false;
}

class DaemonSuccessionTest : public ::testing::TestWithParam<int> {};

TEST_P(DaemonSuccessionTest, ASessionGoesOnWithTheNextDaemonAndKeepsWhatItIs) {
  DaemonProcess first;
  AttachedClient client(first.socket());
  ASSERT_TRUE(Answers(client));
  const v1::Session before = Show(first, "s1");
  first.signal(GetParam());
  ASSERT_TRUE(first.wait().has_value());
  EXPECT_TRUE(Answers(client)) << "the session needs no flagosd";

  DaemonProcess second(After(first));
  ASSERT_TRUE(Eventually([&] { return Runs(first, "s1"); })) << second.log();
  const v1::Session after = Show(first, "s1");
  EXPECT_EQ(after.lease(), before.lease());
  EXPECT_EQ(after.executor_pid(), before.executor_pid());
  EXPECT_EQ(after.client_pid(), before.client_pid());
  EXPECT_EQ(after.program(), before.program());
  EXPECT_DOUBLE_EQ(after.started(), before.started());
  EXPECT_EQ(after.vendor(), before.vendor());
  EXPECT_EQ(after.last_sequence(), before.last_sequence() + 1) << "of the request that no flagosd saw";
  EXPECT_TRUE(Answers(client));

  // A later session is another one.
  AttachedClient later(first.socket());
  EXPECT_STREQ(later.reply().session_name, "s2");

  // It can be ended from here, and the client is told why.
  v1::KillSessionResponse killed;
  EXPECT_TRUE(ControlClient(first.socket()).kill("s1", 5, "enough", killed).ok());
  EXPECT_TRUE(client.session().wait_ended());
  EXPECT_TRUE(Eventually([&] { return IsGone(static_cast<pid_t>(before.executor_pid())); }));
  EXPECT_FALSE(fs::exists(StateOf(first) + "/session-1"));
}
INSTANTIATE_TEST_SUITE_P(KilledOrStopped, DaemonSuccessionTest, ::testing::Values(SIGKILL, SIGTERM));

TEST(DaemonRecoveryTest, TheEndOfAClientIsSeenByTheNextDaemon) {
  DaemonProcess first;
  auto client = std::make_unique<AttachedClient>(first.socket());
  const pid_t executor = static_cast<pid_t>(client->reply().executor_pid);
  first.signal(SIGKILL);
  ASSERT_EQ(first.wait(), -SIGKILL);
  DaemonProcess second(After(first));
  ASSERT_TRUE(Eventually([&] { return Runs(first, "s1"); }));
  client.reset();
  ASSERT_TRUE(Eventually([&] { return Show(first, "s1").state() == v1::SESSION_STATE_ENDED; })) << second.log();
  EXPECT_TRUE(IsGone(executor));
}

TEST(DaemonRecoveryTest, ASecondSuccessorTakesTheSessionAgain) {
  DaemonProcess first;
  AttachedClient client(first.socket());
  first.signal(SIGKILL);
  ASSERT_EQ(first.wait(), -SIGKILL);
  DaemonProcess second(After(first));
  ASSERT_TRUE(Eventually([&] { return Runs(first, "s1"); }));
  second.signal(SIGKILL);
  ASSERT_EQ(second.wait(), -SIGKILL);
  DaemonProcess third(After(first));
  EXPECT_TRUE(Eventually([&] { return Runs(first, "s1"); })) << third.log();
  EXPECT_TRUE(Answers(client));
}

TEST(DaemonRecoveryTest, AnExecutorThatDiedMeanwhileIsForgotten) {
  DaemonProcess first;
  AttachedClient client(first.socket());
  first.signal(SIGKILL);
  ASSERT_EQ(first.wait(), -SIGKILL);
  ASSERT_TRUE(fs::exists(StateOf(first) + "/session-1"));
  const pid_t executor = static_cast<pid_t>(client.reply().executor_pid);
  ::kill(executor, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return IsGone(executor); }));
  DaemonProcess second(After(first));
  EXPECT_FALSE(fs::exists(StateOf(first) + "/session-1"));
  EXPECT_THAT(second.log(), HasSubstr("its executor ended while no flagosd was there"));
  AttachedClient later(first.socket());
  EXPECT_STREQ(later.reply().session_name, "s2") << "the name of a session that was is not given again";
}

TEST(DaemonRecoveryTest, AnExecutorThatDiesUnderTheNextDaemonIsTold) {
  DaemonProcess first;
  AttachedClient client(first.socket());
  first.signal(SIGKILL);
  ASSERT_EQ(first.wait(), -SIGKILL);
  DaemonProcess second(After(first));
  ASSERT_TRUE(Eventually([&] { return Runs(first, "s1"); }));
  ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGKILL);
  ASSERT_TRUE(Eventually([&] { return Show(first, "s1").state() == v1::SESSION_STATE_FAULTED; })) << second.log();
  EXPECT_TRUE(Eventually([&] { return client.page().state.load() == static_cast<uint64_t>(ExecutorState::kLost); }));
}

TEST(DaemonRecoveryTest, AnOrphanIsKilled) {
  DaemonProcess first;
  auto client = std::make_unique<AttachedClient>(first.socket());
  const pid_t executor = static_cast<pid_t>(client->reply().executor_pid);
  ::kill(executor, SIGSTOP);  // it neither ends nor comes
  first.signal(SIGKILL);
  ASSERT_EQ(first.wait(), -SIGKILL);
  // The client is this process, and lives: another one's number stands for a client that is gone.
  const std::string file = StateOf(first) + "/session-1";
  v1::StoredSession stored;
  std::ifstream in(file);
  ASSERT_TRUE(stored.ParseFromIstream(&in));
  stored.mutable_client_process()->set_start_time(1);
  std::ofstream(file) << stored.SerializeAsString();
  DaemonProcess second(After(first));
  EXPECT_TRUE(Eventually([&] { return IsGone(executor); })) << second.log();
  EXPECT_TRUE(Eventually([&] { return !fs::exists(file); }));
}

TEST(DaemonRecoveryTest, AStoppedExecutorComesBackWhenItGoesOn) {
  DaemonProcess first;
  AttachedClient client(first.socket());
  const pid_t executor = static_cast<pid_t>(client.reply().executor_pid);
  ::kill(executor, SIGSTOP);
  first.signal(SIGKILL);
  ASSERT_EQ(first.wait(), -SIGKILL);
  DaemonProcess second(After(first));
  EXPECT_FALSE(IsGone(executor));
  ::kill(executor, SIGCONT);
  EXPECT_TRUE(Eventually([&] { return Runs(first, "s1"); })) << second.log();
}

TEST(DaemonRecoveryTest, ALeaseAndItsTokenOutliveTheDaemon) {
  DaemonProcess first;
  const v1::OpenLeaseResponse lease = ControlClient(first.socket()).open_lease("night run");
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  for (size_t i = 0; i < request.token.size(); ++i) {
    request.token[i] = static_cast<uint8_t>(std::stoi(lease.token().substr(2 * i, 2), nullptr, 16));
  }
  AttachedClient before(first.socket(), request);
  first.signal(SIGKILL);
  ASSERT_EQ(first.wait(), -SIGKILL);
  DaemonProcess second(After(first));
  AttachedClient after(first.socket(), request);
  ASSERT_TRUE(Eventually([&] { return Runs(first, "s1"); }));
  EXPECT_EQ(Show(first, "s1").lease(), lease.lease());
  EXPECT_EQ(Show(first, "s2").lease(), lease.lease());
  EXPECT_EQ(ControlClient(first.socket()).open_lease("another").lease(), "l2");
}

TEST(DaemonRecoveryTest, NobodyElseTakesASession) {
  DaemonProcess first;
  AttachedClient client(first.socket());
  const pid_t executor = static_cast<pid_t>(client.reply().executor_pid);
  ::kill(executor, SIGSTOP);
  first.signal(SIGKILL);
  ASSERT_EQ(first.wait(), -SIGKILL);
  DaemonProcess second(After(first));

  // This process claims to be the executor, with regions that would do.
  const auto claim = [&](uint64_t session) -> std::string {
    auto socket = ConnectUnix(StateOf(first) + "/executors/flagosd.sock");
    if (!socket.ok()) return socket.error().message;
    const auto ring = CreateRegion("ring", RingRegionBytes(1 << 20)), page = CreateRegion("page", kExecutorRegionBytes);
    const IdleProcess idle;
    ChannelRecord record{};
    record.kind = static_cast<uint32_t>(ChannelKind::kRejoin);
    record.session = session;
    record.ring_bytes = 1 << 20;
    record.device_count = 1;
    const DeviceRecord device{};
    std::vector<std::byte> bytes(sizeof record + sizeof device);
    std::memcpy(bytes.data(), &record, sizeof record);
    const int fds[kRejoinFdCount] = {ring.value().get(), page.value().get(), idle.pidfd()};
    EXPECT_TRUE(SendRecord(socket.value().get(), bytes, fds).ok());
    ChannelRecord answer{};
    const Error error =
        ReceiveRecord(socket.value().get(), std::as_writable_bytes(std::span(&answer, 1)), nullptr, 10'000);
    return error.ok() ? (answer.status == 0 ? "taken" : ReadText(answer.message)) : error.message;
  };
  EXPECT_THAT(claim(1), HasSubstr("another process has this session"));
  EXPECT_THAT(claim(7), HasSubstr("does not know the session"));
  ::kill(executor, SIGCONT);
  EXPECT_TRUE(Eventually([&] { return Runs(first, "s1"); })) << second.log();
}

TEST(DaemonRecoveryTest, AStateFolderOfOthersIsRefused) {
  const TemporaryFolder folder;
  const std::string state = folder.path() + "/state";
  fs::create_directory(state);
  ::chmod(state.c_str(), 0755);
  const std::string file = folder.write("flagosd.toml", "schema = 1\n[daemon]\nstate = \"" + state + "\"\n");
  DaemonProcess open({.vendor = "null", .arguments = {"--config", file}, .await = false});
  EXPECT_NE(open.wait(), 0);
  EXPECT_THAT(open.log(), HasSubstr("open to other users"));
  fs::remove(state);
  fs::create_directory_symlink("/tmp", state);
  DaemonProcess link({.vendor = "null", .arguments = {"--config", file}, .await = false});
  EXPECT_NE(link.wait(), 0);
}

TEST(DaemonRecoveryTest, NothingIsLeftWhereNothingGoesOn) {
  DaemonProcess daemon;
  {
    AttachedClient client(daemon.socket());
    EXPECT_TRUE(fs::exists(StateOf(daemon)));
    EXPECT_EQ(fs::status(StateOf(daemon)).permissions(), fs::perms::owner_all);
  }
  ASSERT_TRUE(Eventually([&] { return Show(daemon, "s1").state() == v1::SESSION_STATE_ENDED; }));
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
  EXPECT_FALSE(fs::exists(StateOf(daemon)));
}

}  // namespace
}  // namespace flagos::testing
