// SPDX-License-Identifier: Apache-2.0
// Attaching to a real flagosd with real executors of the null vendor.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "proto/socket/unix_socket.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"

namespace flagos::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr auto kReclaim = 5s;  // a sanitizer is slow at exit
#else
constexpr auto kReclaim = 2s;
#endif

AttachRequest Open(const char* name) {
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  CopyText(request.name, name);
  return request;
}

TEST(DaemonAttachTest, OpensASessionThatAnswers) {
  DaemonProcess daemon({.vendor = "null", .arguments = {"--devices", "3"}});
  AttachedClient client(daemon.socket(), Open("job"));
  EXPECT_EQ(client.reply().status, 0u);
  EXPECT_EQ(client.reply().version, kProtocolVersionMax);
  EXPECT_EQ(client.reply().session, 1u);
  EXPECT_EQ(ReadText(client.reply().session_name), "s1");
  EXPECT_EQ(ReadText(client.reply().vendor), "null");
  ASSERT_EQ(client.devices().size(), 3u);
  EXPECT_GT(client.devices()[0].total_memory, 0u);
  EXPECT_FALSE(client.executor_hung_up());
  const auto reply = client.session().request({.kind = RecordKind::kListOperators});
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->error.ok());
}

TEST(DaemonAttachTest, DescriptorsAllowWhatTheyMust) {
  DaemonProcess daemon;
  const UniqueFd socket = Must(ConnectUnix(daemon.socket()));
  const AttachRequest request = Open("job");
  Must(SendRecord(socket.get(), std::as_bytes(std::span(&request, 1))));
  AttachReply reply;
  std::vector<UniqueFd> fds;
  Must(ReceiveRecord(socket.get(), std::as_writable_bytes(std::span(&reply, 1)), &fds, 20'000));
  ASSERT_EQ(fds.size(), size_t{kAttachFdCount});
  EXPECT_EQ(::fcntl(fds[kRingFd].get(), F_GETFL) & O_ACCMODE, O_RDWR);
  EXPECT_EQ(::fcntl(fds[kExecutorFd].get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(::fcntl(fds[kArenaFd].get(), F_GETFL) & O_ACCMODE, O_RDWR);
  for (const int region : {kRingFd, kExecutorFd, kArenaFd}) {
    EXPECT_EQ(::fcntl(fds[region].get(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_EQ(::ftruncate(fds[region].get(), 0), -1);
  }
  EXPECT_EQ(::mmap(nullptr, kPage, PROT_WRITE, MAP_SHARED, fds[kExecutorFd].get(), 0), MAP_FAILED);
}

TEST(DaemonAttachTest, TellsDevicesWithoutASession) {
  DaemonProcess daemon({.vendor = "null", .arguments = {"--devices", "2", "--warm", "0"}});
  const AttachedClient client(daemon.socket(), MakeAttachRequest(AttachKind::kDevices));
  EXPECT_EQ(client.reply().session, 0u);
  EXPECT_EQ(client.reply().descriptors, 0u);
  EXPECT_EQ(client.devices().size(), 2u);
}

TEST(DaemonAttachTest, GivesTheDevicesThatWereAskedFor) {
  DaemonProcess daemon({.vendor = "null", .arguments = {"--devices", "4"}});
  AttachRequest request = Open("job");
  request.device_mask = 0b1010;
  const AttachedClient client(daemon.socket(), request);
  EXPECT_EQ(client.devices().size(), 2u);
  request.device_mask = 1u << 4;
  const UniqueFd socket = Must(ConnectUnix(daemon.socket()));
  const auto refused = Ask(socket.get(), std::as_bytes(std::span(&request, 1)));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(ReadText(refused.value().message),
            "device 4 was asked for, and there are 4; `flagosctl device list` shows them");
}

TEST(DaemonAttachTest, RefusesATokenThatIsNoLeases) {
  DaemonProcess daemon;
  AttachRequest request = Open("job");
  request.token[5] = 1;
  const UniqueFd socket = Must(ConnectUnix(daemon.socket()));
  const auto refused = Ask(socket.get(), std::as_bytes(std::span(&request, 1)));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused.value().status, static_cast<uint16_t>(ErrorCode::kPermission));
  EXPECT_THAT(ReadText(refused.value().message), HasSubstr("FLAGOS_TOKEN"));
}

TEST(DaemonAttachTest, TellsTheExecutorsErrorRatherThanHang) {
  DaemonProcess daemon({.vendor = "absent", .arguments = {}});
  const UniqueFd socket = Must(ConnectUnix(daemon.socket()));
  const AttachRequest request = Open("job");
  const auto refused = Ask(socket.get(), std::as_bytes(std::span(&request, 1)));
  ASSERT_TRUE(refused.ok()) << refused.error().message;
  EXPECT_THAT(ReadText(refused.value().message), HasSubstr("absent"));
}

TEST(DaemonAttachTest, AHundredAttachesLeaveNothing) {
  DaemonProcess daemon;
  { AttachedClient first(daemon.socket()); }
  const auto before = RestingFilesOf(daemon.pid());
  ASSERT_TRUE(before);
  for (int i = 0; i < 100; ++i) AttachedClient client(daemon.socket());
  EXPECT_EQ(RestingFilesOf(daemon.pid()), before) << daemon.log();
}

TEST(DaemonAttachTest, ManyAttachAtOnce) {
  DaemonProcess daemon;
  std::vector<std::thread> threads;
  std::atomic<int> attached{0};
  for (int i = 0; i < 30; ++i) {
    threads.emplace_back([&] {
      AttachedClient client(daemon.socket());
      attached += client.session().request({.kind = RecordKind::kListOperators}).has_value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(attached, 30);
}

TEST(DaemonAttachTest, ASessionEndsInOrderWithItsConnection) {
  DaemonProcess daemon;
  AttachedClient client(daemon.socket());
  client.close();
  EXPECT_TRUE(client.session().wait_ended());
  EXPECT_EQ(client.page().state.load(), static_cast<uint64_t>(ExecutorState::kEnded));
  EXPECT_TRUE(Eventually([&] { return IsGone(static_cast<pid_t>(client.reply().executor_pid)); }, 5s));
}

TEST(DaemonAttachTest, ASessionEndsWhereItsConnectionIsNotSilent) {
  DaemonProcess daemon;
  AttachedClient client(daemon.socket());
  ASSERT_EQ(::write(client.connection(), "hello", 5), 5);
  EXPECT_TRUE(client.session().wait_ended());
  EXPECT_TRUE(Eventually([&] { return daemon.log().find("must stay silent") != std::string::npos; }));
}

TEST(DaemonAttachTest, AKilledClientIsReclaimedThoughItsChildLivesOn) {
  DaemonProcess daemon;
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  UniqueFd report(pipe[0]), write_end(pipe[1]);
  const pid_t client_pid = ::fork();
  if (client_pid == 0) {
    AttachedClient client(daemon.socket());
    // The child holds every descriptor that the client had.
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    const pid_t pids[2] = {static_cast<pid_t>(client.reply().executor_pid), child};
    [[maybe_unused]] const auto written = ::write(write_end.get(), pids, sizeof pids);
    ::pause();
    ::_exit(0);
  }
  pid_t pids[2];
  ASSERT_EQ(::read(report.get(), pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  const auto [executor, child] = std::pair(pids[0], pids[1]);
  const auto start = std::chrono::steady_clock::now();
  ::kill(client_pid, SIGKILL);
  EXPECT_TRUE(Eventually([&, pid = executor] { return IsGone(pid); }, kReclaim));
  EXPECT_LT(std::chrono::steady_clock::now() - start, kReclaim);
  EXPECT_FALSE(IsGone(child));
  EXPECT_TRUE(Eventually([&] { return daemon.log().find("cause=\"client exited\"") != std::string::npos; }))
      << daemon.log();
  ::kill(child, SIGKILL);
  ::waitpid(client_pid, nullptr, 0);
}

TEST(DaemonAttachTest, AnExecutorThatIgnoresTheEndOfItsClientIsKilled) {
  DaemonProcess daemon;
  const pid_t client_pid = ::fork();
  if (client_pid == 0) {
    AttachedClient client(daemon.socket());
    ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGSTOP);
    ::_exit(0);
  }
  ::waitpid(client_pid, nullptr, 0);
  EXPECT_TRUE(
      Eventually([&] { return daemon.log().find("msg=\"session ended\" session=s1") != std::string::npos; }, kReclaim))
      << daemon.log();
}

class EmbeddedTest : public ::testing::Test {
 protected:
  // Starts an embedded flagosd and returns our end of its connection.
  UniqueFd start(std::vector<std::string> arguments) {
    auto [ours, theirs] = Must(UnixPair());
    const int fd = theirs.get();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::fcntl(fd, F_SETFD, 0);
      ::close(ours.get());
      std::vector<std::string> words = {BuildFolder() + "/bin/flagosd", "--embedded", "--connection-fd",
                                        std::to_string(fd)};
      words.insert(words.end(), arguments.begin(), arguments.end());
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    return std::move(ours);
  }
  // Its exit code, once it has ended.
  int wait() {
    int status = 0;
    EXPECT_TRUE(Eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  pid_t pid_ = -1;
};

TEST_F(EmbeddedTest, ServesItsOneClientAndEndsWithIt) {
  AttachedClient client(start({"--vendor", "null", "--devices", "2"}), Open("job"));
  EXPECT_EQ(client.devices().size(), 2u);
  EXPECT_TRUE(client.session().request({.kind = RecordKind::kListOperators}).has_value());
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(ChildrenOf(pid_).size(), 1u) << "no spare executor";
  client.close();
  EXPECT_EQ(wait(), 0);
  EXPECT_TRUE(Eventually([&] { return IsGone(static_cast<pid_t>(client.reply().executor_pid)); }));
}

TEST_F(EmbeddedTest, GivesTheDevicesThatWereAskedForThoughNoneAreKnownYet) {
  AttachRequest request = Open("job");
  request.device_mask = 0b10;
  AttachedClient client(start({"--vendor", "null", "--devices", "2"}), request);
  EXPECT_EQ(client.devices().size(), 1u);
}

TEST_F(EmbeddedTest, EndsWhereItsClientNeverAsks) {
  start({"--vendor", "null"}).reset();
  EXPECT_EQ(wait(), 0);
}

TEST_F(EmbeddedTest, TellsWhyThereIsNoSessionAndEnds) {
  const UniqueFd connection = start({"--vendor", "absent"});
  const AttachRequest request = Open("job");
  const auto refused = Ask(connection.get(), std::as_bytes(std::span(&request, 1)));
  ASSERT_TRUE(refused.ok()) << refused.error().message;
  EXPECT_THAT(ReadText(refused.value().message), HasSubstr("absent"));
  EXPECT_EQ(wait(), 0);
}

TEST_F(EmbeddedTest, ItsExecutorEndsWithItWhateverKillsIt) {
  AttachedClient client(start({"--vendor", "null"}), Open("job"));
  ::kill(pid_, SIGKILL);
  EXPECT_EQ(wait(), -SIGKILL);
  EXPECT_TRUE(Eventually([&] { return IsGone(static_cast<pid_t>(client.reply().executor_pid)); }));
}

}  // namespace
}  // namespace flagos::testing
