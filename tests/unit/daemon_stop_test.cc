// SPDX-License-Identifier: Apache-2.0
// Starting, stopping and losing flagosd itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/control_client.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"
#include "tests/support/service_manager.h"

namespace flagos::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

bool Answers(AttachedClient& client) {
  return client.session().request({.kind = RecordKind::kListOperators}).has_value();
}

TEST(DaemonStopTest, ASecondDaemonOnTheSocketIsRefused) {
  DaemonProcess daemon;
  DaemonProcess second({.vendor = "null", .arguments = {"--socket", daemon.socket()}, .await = false});
  EXPECT_EQ(second.wait(), 6);
  EXPECT_THAT(second.log(), HasSubstr("another flagosd, with pid " + std::to_string(daemon.pid())));
  AttachedClient client(daemon.socket());
  EXPECT_TRUE(Answers(client));
}

TEST(DaemonStopTest, ReplacesTheSocketOfOneThatWasKilled) {
  DaemonProcess daemon;
  daemon.signal(SIGKILL);
  ASSERT_EQ(daemon.wait(), -SIGKILL);
  ASSERT_TRUE(fs::exists(daemon.socket()));
  DaemonProcess next({.vendor = "null", .arguments = {"--socket", daemon.socket()}});
  AttachedClient client(daemon.socket());
  EXPECT_TRUE(Answers(client));
}

TEST(DaemonStopTest, WarmExecutorsEndWithAKilledDaemon) {
  DaemonProcess daemon;
  ASSERT_TRUE(Eventually([&] { return ChildrenOf(daemon.pid()).size() == 1; }));
  const pid_t warm = ChildrenOf(daemon.pid())[0];
  daemon.signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return IsGone(warm); }));
}

TEST(DaemonStopTest, ASessionOutlivesAKilledDaemon) {
  DaemonProcess daemon;
  auto client = std::make_unique<AttachedClient>(daemon.socket());
  daemon.signal(SIGKILL);
  ASSERT_EQ(daemon.wait(), -SIGKILL);
  EXPECT_TRUE(Answers(*client));
  const pid_t executor = static_cast<pid_t>(client->reply().executor_pid);
  EXPECT_FALSE(IsGone(executor));
  ::kill(executor, SIGKILL);
}

TEST(DaemonStopTest, SigtermLetsSessionsGoOnAndLeavesNoSocket) {
  DaemonProcess daemon;
  AttachedClient client(daemon.socket());
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
  EXPECT_FALSE(fs::exists(daemon.socket()));
  EXPECT_FALSE(fs::exists(daemon.socket() + ".lock"));
  EXPECT_TRUE(Answers(client));
  ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGKILL);
}

TEST(DaemonStopTest, SigintEndsSessionsInOrder) {
  DaemonProcess daemon;
  AttachedClient client(daemon.socket());
  daemon.signal(SIGINT);
  EXPECT_TRUE(client.session().wait_ended());
  EXPECT_EQ(client.page().state.load(), static_cast<uint64_t>(ExecutorState::kEnded));
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
  EXPECT_TRUE(IsGone(static_cast<pid_t>(client.reply().executor_pid)));
}

TEST(DaemonStopTest, ASecondSignalEndsAtOnce) {
  DaemonProcess daemon;
  AttachedClient client(daemon.socket());
  ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGSTOP);  // which draining waits five seconds for
  daemon.signal(SIGINT);
  ASSERT_TRUE(Eventually([&] { return daemon.log().find("msg=stopping") != std::string::npos; }));
  daemon.signal(SIGINT);
  EXPECT_EQ(daemon.wait(2s), 1);
  ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGKILL);
}

TEST(DaemonStopTest, StopsWhileWatchedAndTellsTheWatcher) {
  DaemonProcess daemon;
  ControlClient control(daemon.socket());
  grpc::ClientContext context;
  const auto stream = control.stub().WatchSessions(&context, {});
  AttachedClient client(daemon.socket());
  v1::SessionEvent event;
  ASSERT_TRUE(stream->Read(&event));
  daemon.signal(SIGTERM);
  while (stream->Read(&event)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(daemon.wait(5s), 0) << daemon.log();
  ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGKILL);
}

TEST(DaemonStopTest, IsReadyOnceItsFirstExecutorIs) {
  DaemonProcess daemon({.vendor = "null", .arguments = {"--devices", "2"}});
  ASSERT_EQ(ChildrenOf(daemon.pid()).size(), 1u);
  // Known, and not asked of an executor any more: there is none that could tell.
  ::kill(ChildrenOf(daemon.pid())[0], SIGSTOP);
  const AttachedClient client(daemon.socket(), MakeAttachRequest(AttachKind::kDevices));
  EXPECT_EQ(client.devices().size(), 2u);
}

TEST(DaemonStopTest, IsReadyThoughThereAreNoDevices) {
  DaemonProcess daemon({.vendor = "absent", .arguments = {}});  // which waits until it is
  EXPECT_THAT(daemon.log(), HasSubstr("an executor could not be started"));
}

TEST(DaemonStopTest, TellsItsServiceManager) {
  ServiceManager manager;
  DaemonProcess daemon;
  EXPECT_EQ(manager.next(), "EXTEND_TIMEOUT_USEC=70000000") << "start_timeout, and a little more";
  EXPECT_EQ(manager.next(), "READY=1");
  daemon.signal(SIGTERM);
  EXPECT_EQ(manager.next(), "STOPPING=1");
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(DaemonStopTest, ListensOnTheSocketThatAServiceManagerPassed) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/activated";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket.get(), 16), 0);
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    ::dup2(socket.get(), 3);
    ::setenv("LISTEN_FDS", "1", 1);
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    const std::string program = BuildFolder() + "/bin/flagosd";
    ::execl(program.c_str(), "flagosd", "--vendor", "null", "--socket", "/nowhere", "--log-level", "error", nullptr);
    ::_exit(127);
  }
  {
    AttachedClient client(path);  // waits in the backlog until flagosd accepts
    EXPECT_TRUE(Answers(client));
  }
  ::kill(daemon, SIGTERM);
  int status = 0;
  EXPECT_TRUE(Eventually([&] { return ::waitpid(daemon, &status, WNOHANG) == daemon; }));
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(path)) << "the socket is the manager's";
}

TEST(DaemonStopTest, SighupOpensTheLogAnew) {
  TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  DaemonProcess daemon({.vendor = "null", .arguments = {"--log-file", log}});
  fs::rename(log, log + ".1");
  daemon.signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return fs::exists(log) && fs::file_size(log) > 0; }));
  AttachedClient client(daemon.socket());
  EXPECT_TRUE(Answers(client)) << "it goes on";
}

TEST(DaemonStopTest, AFullDiskForLogsStopsNothing) {
  DaemonProcess daemon({.vendor = "null", .arguments = {"--log-file", "/dev/full"}});
  for (int i = 0; i < 3; ++i) {
    AttachedClient client(daemon.socket());
    EXPECT_TRUE(Answers(client));
  }
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(DaemonStopTest, IsSmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has memory of its own";
#endif
  DaemonProcess daemon;
  std::vector<std::unique_ptr<AttachedClient>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<AttachedClient>(daemon.socket()));
  EXPECT_EQ(ControlClient(daemon.socket()).list(false).size(), 20u);
  EXPECT_LT(ResidentBytesOf(daemon.pid()), 40u << 20);
}

}  // namespace
}  // namespace flagos::testing
