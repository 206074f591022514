// SPDX-License-Identifier: Apache-2.0
// Whom gRPC says a call comes from, where its connection was handed over as a descriptor. What peer.h relies on is
// checked here, because gRPC does not promise it.
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>
#include <vector>

#include "flagos/v1/control.grpc.pb.h"
#include "proto/socket/unix_socket.h"
#include "server/common/fd.h"
#include "server/daemon/clients/peer.h"
#include "tests/support/daemon_process.h"

namespace flagos::daemon {
namespace {

uint64_t Cookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return ::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

// Holds each call until it is let go.
class HoldingService final : public v1::Control::CallbackService {
 public:
  struct Held {
    grpc::ServerUnaryReactor* reactor;
    std::string peer;
  };
  grpc::ServerUnaryReactor* GetVersion(grpc::CallbackServerContext* context, const v1::GetVersionRequest*,
                                       v1::GetVersionResponse*) override {
    auto* const reactor = context->DefaultReactor();
    arrived.set_value({reactor, std::string(context->peer())});
    return reactor;
  }
  std::promise<Held> arrived;
};

class PeerTest : public ::testing::Test {
 protected:
  PeerTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    auto pair = UnixPair();
    EXPECT_TRUE(SetNonBlocking(pair.value().first.get()).ok() && SetNonBlocking(pair.value().second.get()).ok());
    server_fd_ = pair.value().first.get();
    cookie_ = Cookie(server_fd_);
    grpc::AddInsecureChannelFromFd(server_.get(), pair.value().first.release());
    client_fd_ = pair.value().second.get();
    channel_ = grpc::CreateInsecureChannelFromFd("test", pair.value().second.release());
  }
  ~PeerTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  HoldingService service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  int server_fd_ = -1, client_fd_ = -1;
  uint64_t cookie_ = 0;
};

TEST_F(PeerTest, IsWhoConnected) {
  const auto stub = v1::Control::NewStub(channel_);
  std::thread caller([&] {
    grpc::ClientContext context;
    v1::GetVersionResponse response;
    EXPECT_TRUE(stub->GetVersion(&context, {}, &response).ok());
  });
  const auto held = service_.arrived.get_future().get();
  EXPECT_EQ(held.peer, "fd:" + std::to_string(server_fd_));
  const auto caller_of = CallerOf(held.peer);
  ASSERT_TRUE(caller_of.ok());
  EXPECT_EQ(caller_of->uid, ::getuid());
  held.reactor->Finish(grpc::Status::OK);
  caller.join();
}

TEST_F(PeerTest, TheDescriptorIsTheConnectionsUntilItsLastCallEnds) {
  ASSERT_NE(cookie_, 0u);
  const auto stub = v1::Control::NewStub(channel_);
  grpc::ClientContext context;
  v1::GetVersionResponse response;
  std::promise<void> done;
  const v1::GetVersionRequest request;
  stub->async()->GetVersion(&context, &request, &response, [&](const grpc::Status&) { done.set_value(); });
  const auto held = service_.arrived.get_future().get();
  // The client hangs up in the middle of its call, and others come that would take the number were it free.
  ::shutdown(client_fd_, SHUT_RDWR);
  done.get_future().get();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_TRUE(HasHungUp(server_fd_));
  std::vector<UniqueFd> others;
  for (int i = 0; i < 64; ++i) others.emplace_back(::dup(STDERR_FILENO));
  EXPECT_EQ(Cookie(server_fd_), cookie_) << "gRPC closed the connection of a call that it still carries";
  held.reactor->Finish(grpc::Status::OK);
  // And it does close it afterwards.
  EXPECT_TRUE(testing::Eventually([&] { return Cookie(server_fd_) != cookie_; }));
}

TEST(CallerTest, IsNobodyWhereTheKernelDoesNotSay) {
  for (const char* peer :
       {"", "ipv4:127.0.0.1:80", "unix:", "fd:", "fd:-1", "fd:12x", "fd:999999", "fd:99999999999999999999"}) {
    EXPECT_TRUE(absl::IsUnauthenticated(CallerOf(peer).status())) << peer;
  }
}

TEST(CallerTest, MayEndItsOwnSessionsOnlyUnlessItIsRoot) {
  EXPECT_TRUE((Caller{0}.may_end(1000)));
  EXPECT_TRUE((Caller{1000}.may_end(1000)));
  EXPECT_FALSE((Caller{1000}.may_end(1001)));
  EXPECT_FALSE((Caller{1000}.may_end(0)));
}

}  // namespace
}  // namespace flagos::daemon
