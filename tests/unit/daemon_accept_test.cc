// SPDX-License-Identifier: Apache-2.0
// What may arrive at flagosd's socket, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <vector>

#include "proto/socket/unix_socket.h"
#include "server/daemon/clients/acceptor.h"
#include "server/daemon/clients/socket_file.h"
#include "tests/support/daemon_process.h"
#include "tests/support/loop_thread.h"

namespace flagos::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class AcceptorTest : public ::testing::Test {
 protected:
  AcceptorTest()
      : file_(*SocketFile::Create(folder_.path() + "/s")), second_(*SocketFile::Create(folder_.path() + "/second")) {
    thread_.call([this] {
      acceptor_ = std::make_unique<Acceptor>(
          thread_.loop(),
          Acceptor::Handlers{.grpc = [this](UniqueFd socket) { grpc_.push_back(std::move(socket)); },
                             .attach =
                                 [this](const AttachRequest& request, const AttachTerms&, ClientConnection client) {
                                   ++attached_;
                                   name_ = ReadText(request.name);
                                   uid_ = client.peer().uid;
                                   client.reply(MakeAttachReply(MakeError(ErrorCode::kNotFound, "reached")));
                                 },
                             .closed = {}});
      acceptor_->listen(file_->fd());
      acceptor_->listen(second_->fd());
    });
  }
  ~AcceptorTest() override {
    thread_.call([this] { acceptor_.reset(); });
  }
  UniqueFd connect() { return std::move(ConnectUnix(folder_.path() + "/s")).value(); }
  static std::span<const std::byte> Bytes(const AttachRequest& request) {
    return std::as_bytes(std::span(&request, 1));
  }
  // The other end closes within `patience`; whatever it sends before is read.
  static bool Closes(int socket, int patience_ms) {
    std::byte byte;
    for (;;) {
      const Error error = ReceiveRecord(socket, std::span(&byte, 1), nullptr, patience_ms);
      if (!error.ok()) return error.code != ErrorCode::kTimeout;
    }
  }

  testing::TemporaryFolder folder_;
  const std::unique_ptr<SocketFile> file_, second_;
  testing::LoopThread thread_;
  std::unique_ptr<Acceptor> acceptor_;
  std::atomic<int> attached_{0};
  std::string name_;
  uid_t uid_ = 99;
  std::list<UniqueFd> grpc_;
};

TEST_F(AcceptorTest, HandsAGoodRequestOver) {
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  CopyText(request.name, "job");
  const UniqueFd socket = connect();
  const auto reply = testing::Ask(socket.get(), Bytes(request));
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(ReadText(reply.value().message), "reached");
  EXPECT_EQ(name_, "job");
  EXPECT_EQ(uid_, ::getuid());
}

TEST_F(AcceptorTest, TakesARequestInPieces) {
  const AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  const UniqueFd socket = connect();
  for (const std::byte& byte : Bytes(request).first(255))
    ASSERT_TRUE(SendRecord(socket.get(), std::span(&byte, 1)).ok());
  EXPECT_TRUE(testing::Ask(socket.get(), Bytes(request).last(1)).ok());
}

TEST_F(AcceptorTest, LeavesHttp2ToGrpcUnread) {
  const UniqueFd socket = connect();
  ASSERT_EQ(::send(socket.get(), "PRI * HTTP/2.0", 14, 0), 14);
  ASSERT_TRUE(testing::Eventually([&] { return thread_.call([&] { return grpc_.size(); }) == 1; }));
  char text[32] = {};
  EXPECT_EQ(::recv(grpc_.front().get(), text, sizeof text, 0), 14);
}

TEST_F(AcceptorTest, ClosesOnGarbage) {
  for (const std::string& garbage :
       std::vector<std::string>{"GET / HTTP/1.1\r\n\r\n", "\n", std::string(1, '\0') + "FLAGOSA1"}) {
    const UniqueFd socket = connect();
    ASSERT_GE(::send(socket.get(), garbage.data(), garbage.size(), 0), 1);
    EXPECT_TRUE(Closes(socket.get(), 1000));
  }
  EXPECT_EQ(attached_, 0);
}

TEST_F(AcceptorTest, AnswersARequestThatIsWrong) {
  struct Case {
    const char* text;
    void (*spoil)(AttachRequest&);
  };
  for (const Case& wrong : std::vector<Case>{
           {"FLAGOSA1", [](AttachRequest& r) { r.magic[7] = '9'; }},
           {"size", [](AttachRequest& r) { r.size = 4096; }},
           {"kind", [](AttachRequest& r) { r.kind = 77; }},
           {"without an end", [](AttachRequest& r) { std::fill(std::begin(r.name), std::end(r.name), 'x'); }},
           {"speaks protocol 1 and the client 7 to 9", [](AttachRequest& r) { r.version_min = 7, r.version_max = 9; }},
       }) {
    AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
    wrong.spoil(request);
    const UniqueFd socket = connect();
    const auto reply = testing::Ask(socket.get(), Bytes(request));
    ASSERT_TRUE(reply.ok()) << wrong.text << ": " << reply.error().message;
    EXPECT_NE(reply.value().status, 0u);
    EXPECT_THAT(ReadText(reply.value().message), HasSubstr(wrong.text));
    EXPECT_TRUE(Closes(socket.get(), 1000)) << wrong.text;
  }
  EXPECT_EQ(attached_, 0);
}

TEST_F(AcceptorTest, ForgetsHalfARequest) {
  const AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  for (int i = 0; i < 200; ++i) {
    const UniqueFd socket = connect();
    ASSERT_TRUE(SendRecord(socket.get(), Bytes(request).first(100)).ok());
  }
  const UniqueFd socket = connect();
  EXPECT_TRUE(testing::Ask(socket.get(), Bytes(request)).ok());
  EXPECT_EQ(attached_, 1);
}

TEST_F(AcceptorTest, SilenceHasADeadlineAndHoldsNobodyUp) {
  const AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  const UniqueFd silent = connect();
  const UniqueFd half = connect();
  ASSERT_TRUE(SendRecord(half.get(), Bytes(request).first(255)).ok());
  const auto start = Clock::now();
  EXPECT_TRUE(testing::Ask(connect().get(), Bytes(request)).ok());
  EXPECT_LT(Clock::now() - start, 1s);
  EXPECT_TRUE(Closes(silent.get(), 5000));
  EXPECT_TRUE(Closes(half.get(), 5000));
  EXPECT_GE(Clock::now() - start, kRequestDeadline);
}

TEST_F(AcceptorTest, OneUsersConnectionsDoNotFillIt) {
  std::vector<UniqueFd> silent;
  for (size_t i = 0; i < kMaxPendingPerUser; ++i) silent.push_back(connect());
  const AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  UniqueFd socket = connect();
  const auto refused = testing::Ask(socket.get(), Bytes(request));
  ASSERT_TRUE(refused.ok()) << refused.error().message;
  EXPECT_THAT(ReadText(refused.value().message), HasSubstr("too many connections"));
  silent.clear();
  EXPECT_TRUE(testing::Eventually([&] {
    socket = connect();
    const auto reply = testing::Ask(socket.get(), Bytes(request));
    return reply.ok() && ReadText(reply.value().message) == "reached";
  }));
}

TEST_F(AcceptorTest, WaitsWhereThereAreNoDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "the undefined behaviour sanitizer looks at objects through a pipe, for which this leaves no descriptor";
#endif
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // No number is free below the limit from here on, so accept4() fails.
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(socket.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::vector<UniqueFd> fillers;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) fillers.emplace_back(fd);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder_.path() + "/s";
  std::copy(path.begin(), path.end(), address.sun_path);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  EXPECT_TRUE(SendRecord(socket.get(), Bytes(request)).ok());
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(attached_, 0);
  fillers.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(testing::Eventually([&] { return attached_ == 1; }));
  // The other listener was watched all the while, and still is.
  const UniqueFd other = std::move(ConnectUnix(folder_.path() + "/second")).value();
  EXPECT_TRUE(testing::Ask(other.get(), Bytes(request)).ok());
}

}  // namespace
}  // namespace flagos::daemon
