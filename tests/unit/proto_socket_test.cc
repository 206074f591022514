// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "proto/socket/unix_socket.h"
#include "tests/unit/proto_bytes.h"
#include "tests/unit/proto_child.h"

namespace flagos {
namespace {

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class Pair : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = UnixPair();
    ASSERT_TRUE(pair.ok());
    std::tie(left, right) = std::move(pair).value();
  }
  UniqueFd left, right;
  std::array<std::byte, 16> record{};
};

TEST_F(Pair, CarriesARecordInPieces) {
  std::thread sender([&] {
    const auto bytes = testing::Bytes(uint64_t{1}, uint64_t{2});
    ASSERT_TRUE(SendRecord(left.get(), std::span(bytes).first(3)).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(SendRecord(left.get(), std::span(bytes).subspan(3)).ok());
  });
  EXPECT_TRUE(ReceiveRecord(right.get(), record, nullptr, 5000).ok());
  sender.join();
  EXPECT_EQ(testing::Hex(record), "01000000000000000200000000000000");
}

TEST_F(Pair, CarriesDescriptors) {
  std::vector<UniqueFd> sent;
  std::vector<int> numbers;
  for (size_t i = 0; i < kMaxPassedFds; ++i) {
    sent.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    numbers.push_back(sent.back().get());
  }
  ASSERT_TRUE(SendRecord(left.get(), record, numbers).ok());
  std::vector<UniqueFd> received;
  ASSERT_TRUE(ReceiveRecord(right.get(), record, &received, 1000).ok());
  ASSERT_EQ(received.size(), kMaxPassedFds);
  for (const UniqueFd& fd : received) {
    EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    struct stat status {};
    ASSERT_EQ(::fstat(fd.get(), &status), 0);
    EXPECT_TRUE(S_ISCHR(status.st_mode));
  }
}

TEST_F(Pair, ClosesDescriptorsThatNobodyAskedFor) {
  const size_t before = OpenDescriptors();
  const int number = left.get();
  ASSERT_TRUE(SendRecord(left.get(), record, std::span(&number, 1)).ok());
  EXPECT_EQ(ReceiveRecord(right.get(), record, nullptr, 1000).code, ErrorCode::kMalformed);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(Pair, RefusesMoreDescriptorsThanAgreed) {
  const size_t before = OpenDescriptors();
  {
    std::vector<UniqueFd> received;
    const std::vector<int> numbers(kMaxPassedFds, left.get());
    ASSERT_TRUE(SendRecord(left.get(), std::span(record).first(8), numbers).ok());
    ASSERT_TRUE(SendRecord(left.get(), std::span(record).first(8), std::span(numbers).first(1)).ok());
    EXPECT_EQ(ReceiveRecord(right.get(), record, &received, 1000).code, ErrorCode::kMalformed);
    EXPECT_LE(received.size(), kMaxPassedFds);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(Pair, TellsHowAPeerLeft) {
  ASSERT_TRUE(SendRecord(left.get(), std::span(record).first(5)).ok());
  EXPECT_FALSE(HasHungUp(right.get()));
  left.reset();
  EXPECT_TRUE(HasHungUp(right.get()));
  EXPECT_EQ(ReceiveRecord(right.get(), record, nullptr, 1000).code, ErrorCode::kMalformed) << "within a record";
  EXPECT_EQ(ReceiveRecord(right.get(), record, nullptr, 1000).code, ErrorCode::kUnavailable) << "between records";
  EXPECT_EQ(SendRecord(right.get(), record).code, ErrorCode::kUnavailable) << "and no SIGPIPE";
}

TEST_F(Pair, WaitsNoLongerThanTold) {
  EXPECT_EQ(ReceiveRecord(right.get(), record, nullptr, 0).code, ErrorCode::kTimeout);
  ASSERT_TRUE(SendRecord(left.get(), std::span(record).first(15)).ok());
  EXPECT_EQ(ReceiveRecord(right.get(), record, nullptr, 20).code, ErrorCode::kTimeout) << "a slow peer's record";
}

TEST(Peer, IsKnownByCredentialsAndPidfd) {
  auto pair = UnixPair();
  ASSERT_TRUE(pair.ok());
  const auto credentials = GetPeerCredentials(pair.value().first.get());
  ASSERT_TRUE(credentials.has_value());
  EXPECT_EQ(credentials->pid, ::getpid());
  EXPECT_EQ(credentials->uid, ::getuid());
  auto pidfd = GetPeerPidfd(pair.value().first.get());
  ASSERT_TRUE(pidfd.ok()) << pidfd.error().message;
  EXPECT_FALSE(HasExited(pidfd.value().get()));
  EXPECT_FALSE(GetPeerCredentials(-1).has_value());
}

class Listener : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/flagos-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder = name;
    path = folder + "/socket";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  UniqueFd listen() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 5), 0);
    return fd;
  }
  std::string folder, path;
};

TEST_F(Listener, IsConnectedTo) {
  const UniqueFd listening = listen();
  EXPECT_TRUE(ConnectUnix(path).ok());
}

TEST_F(Listener, ErrorsTellWhatIsWrong) {
  const auto absent = ConnectUnix(path);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(absent.error().message.find("start flagosd"), std::string::npos) << absent.error().message;

  listen().reset();
  const auto refused = ConnectUnix(path);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message.find("nothing listens"), std::string::npos) << refused.error().message;

  const auto long_path = ConnectUnix("/tmp/" + std::string(200, 'x'));
  ASSERT_FALSE(long_path.ok());
  EXPECT_EQ(long_path.error().code, ErrorCode::kValue);
}

// A child of a dead process may still hold its end of the connection: the pidfd tells the truth.
TEST_F(Listener, APidfdTellsTheEndOfTheProcessAndNotOfItsChildren) {
  const UniqueFd listening = listen();
  testing::Child client([&] {
    static auto connected = ConnectUnix(path);
    if (!connected.ok()) return 1;
    if (::fork() == 0) {
      ::sleep(3);
      ::_exit(0);
    }
    ::pause();
    return 0;
  });
  const UniqueFd accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  auto pidfd = GetPeerPidfd(accepted.get());
  ASSERT_TRUE(pidfd.ok()) << pidfd.error().message;
  EXPECT_FALSE(HasExited(pidfd.value().get()));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the child is there by now
  ::kill(client.pid(), SIGKILL);
  EXPECT_EQ(client.wait(), -SIGKILL);
  EXPECT_TRUE(HasExited(pidfd.value().get()));
  EXPECT_FALSE(HasHungUp(accepted.get())) << "the child holds the connection";
}

}  // namespace
}  // namespace flagos
