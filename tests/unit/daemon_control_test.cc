// SPDX-License-Identifier: Apache-2.0
// The control plane of a real flagosd.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "proto/socket/unix_socket.h"
#include "proto/wire/records.h"
#include "tests/support/control_client.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"

namespace flagos::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A connection whose peer credentials are another user's. The kernel takes them from the thread that connects, and the
// bare system call changes this thread's alone (the C library's would change the whole process).
std::shared_ptr<grpc::Channel> ConnectAs(uid_t uid, const std::string& socket) {
  int fd = -1;
  std::thread([&] {
    if (::syscall(SYS_setresuid, uid, uid, uid) != 0) return;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket.copy(address.sun_path, sizeof address.sun_path - 1);
    fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) ::close(std::exchange(fd, -1));
  }).join();
  if (fd < 0) throw std::runtime_error("no connection as user " + std::to_string(uid));
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return grpc::CreateInsecureChannelFromFd("flagosd", fd);
}

class DaemonControlTest : public ::testing::Test {
 protected:
  DaemonControlTest() : daemon_({.vendor = "null", .arguments = {"--devices", "2"}}), control_(daemon_.socket()) {}
  template <class Request, class Response>
  grpc::Status call(grpc::Status (v1::Control::Stub::*rpc)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    return (control_.stub().*rpc)(&context, request, &response);
  }

  DaemonProcess daemon_;
  ControlClient control_;
};

TEST_F(DaemonControlTest, AgreesOnAVersionOrNamesBothRanges) {
  v1::GetVersionRequest request;
  v1::GetVersionResponse response;
  ASSERT_TRUE(call(&v1::Control::Stub::GetVersion, request, response).ok());
  EXPECT_EQ(response.pid(), static_cast<uint32_t>(daemon_.pid()));
  EXPECT_THAT(response.features(), ElementsAre("base", "kernels"));
  EXPECT_EQ(response.chosen(), 0u);
  request.mutable_supported()->set_min(1);
  request.mutable_supported()->set_max(99);
  ASSERT_TRUE(call(&v1::Control::Stub::GetVersion, request, response).ok());
  EXPECT_EQ(response.chosen(), kProtocolVersionMax);
  request.mutable_supported()->set_min(98);
  const grpc::Status refused = call(&v1::Control::Stub::GetVersion, request, response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("the caller 98 to 99"));
}

TEST_F(DaemonControlTest, ShowsDevicesWithTheirSessions) {
  AttachedClient client(daemon_.socket());
  v1::ListDevicesResponse response;
  ASSERT_TRUE(call(&v1::Control::Stub::ListDevices, {}, response).ok());
  ASSERT_EQ(response.devices_size(), 2);
  EXPECT_EQ(response.devices(1).index(), 1u);
  EXPECT_EQ(response.devices(1).vendor(), "null");
  EXPECT_EQ(response.devices(1).health(), v1::DEVICE_HEALTH_HEALTHY);
  EXPECT_EQ(response.devices(1).sessions(), 1u);
  EXPECT_EQ(response.devices(1).memory_total(), client.devices()[1].total_memory);
}

TEST_F(DaemonControlTest, ShowsWhatTheSessionsPagesSay) {
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  CopyText(request.name, "train\x1b[31m");
  CopyText(request.torch_version, "2.13.0");
  AttachedClient client(daemon_.socket(), request);
  ASSERT_TRUE(client.session().request({.kind = RecordKind::kListOperators}).has_value());
  const v1::Session session = control_.show("s1");
  EXPECT_EQ(session.state(), v1::SESSION_STATE_RUNNING);
  EXPECT_EQ(session.program(), "train?[31m") << "what a client says is shown, not obeyed";
  EXPECT_EQ(session.client_torch(), "2.13.0");
  EXPECT_EQ(session.client_pid(), static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(session.uid(), ::getuid());
  EXPECT_EQ(session.executor_pid(), client.reply().executor_pid);
  EXPECT_THAT(session.devices(), ElementsAre(0, 1));
  EXPECT_EQ(session.ring_bytes(), client.reply().ring_bytes);
  // The answer comes a moment before the executor says that the record is read.
  EXPECT_TRUE(Eventually([&] { return control_.show("s1").queue_bytes() == 0; }));
}

TEST_F(DaemonControlTest, ClampsWhatAHostileClientWrites) {
  AttachedClient client(daemon_.socket());
  ClientPage& page = client.session().client_page();
  page.blocked_reason.store(1);
  page.blocked_since_ns.store(UINT64_MAX);
  page.blocked_count.store(UINT64_MAX);
  v1::Session session = control_.show("s1");
  EXPECT_EQ(session.blocked(), "ring full");
  EXPECT_EQ(session.blocked_for(), 0);
  EXPECT_EQ(session.blocked_count(), uint64_t{INT64_MAX});
  page.blocked_reason.store(4711);
  session = control_.show("s1");
  EXPECT_EQ(session.blocked(), "");
  page.head.store(UINT64_MAX);  // which the executor does not survive, and flagosd does
  EXPECT_TRUE(client.session().wait_ended());
  EXPECT_LE(control_.show("s1").queue_bytes(), client.reply().ring_bytes);
}

TEST_F(DaemonControlTest, FindsSessionsByAPrefixThatIsOneAlone) {
  std::vector<std::unique_ptr<AttachedClient>> clients;
  for (int i = 0; i < 11; ++i) clients.push_back(std::make_unique<AttachedClient>(daemon_.socket()));
  EXPECT_EQ(control_.show("s1").id(), "s1") << "exact, though s10 starts alike";
  EXPECT_EQ(control_.show("s11").id(), "s11");
  v1::ShowSessionRequest request;
  v1::ShowSessionResponse response;
  request.set_id("s");
  EXPECT_EQ(call(&v1::Control::Stub::ShowSession, request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_id("s77");
  EXPECT_EQ(call(&v1::Control::Stub::ShowSession, request, response).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_id("");
  EXPECT_EQ(call(&v1::Control::Stub::ShowSession, request, response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(DaemonControlTest, KillsASessionAndAnswersOnceItIsOver) {
  AttachedClient client(daemon_.socket());
  v1::KillSessionResponse response;
  EXPECT_EQ(control_.kill("s1", 1, "", response).error_code(), grpc::StatusCode::INVALID_ARGUMENT)
      << "a reason is required";
  EXPECT_EQ(control_.kill("s1", -1, "x", response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(control_.kill("s1", 5, "maintenance (维护)", response).ok());
  EXPECT_EQ(response.session().state(), v1::SESSION_STATE_ENDED);
  EXPECT_EQ(response.session().end_cause(), "killed by uid " + std::to_string(::getuid()) + ": maintenance (维护)");
  EXPECT_TRUE(client.session().wait_ended());
  EXPECT_EQ(control_.kill("s1", 5, "again", response).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(control_.kill("s9", 5, "x", response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(DaemonControlTest, KillsWhatDoesNotEndWithinItsGrace) {
  AttachedClient client(daemon_.socket());
  ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGSTOP);
  v1::KillSessionResponse response;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(control_.kill("s1", 0.3, "stuck", response).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, 300ms);
  EXPECT_EQ(response.session().state(), v1::SESSION_STATE_ENDED);
  EXPECT_EQ(client.page().state.load(), static_cast<uint64_t>(ExecutorState::kLost));
}

TEST_F(DaemonControlTest, AnotherUserSeesEverythingAndEndsNothing) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  AttachedClient client(daemon_.socket());
  ASSERT_EQ(::chmod(daemon_.socket().c_str(), 0666), 0);
  ASSERT_EQ(::chmod(daemon_.socket().substr(0, daemon_.socket().rfind('/')).c_str(), 0755), 0);
  ControlClient other(ConnectAs(65534, daemon_.socket()));
  EXPECT_EQ(other.show("s1").id(), "s1");
  EXPECT_EQ(other.list(false).size(), 1u);
  v1::KillSessionResponse response;
  EXPECT_EQ(other.kill("s1", 1, "x", response).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  for (const bool dry_run : {false, true}) {
    v1::ReloadConfigRequest request;
    v1::ReloadConfigResponse reloaded;
    grpc::ClientContext context;
    request.set_dry_run(dry_run);
    EXPECT_EQ(other.stub().ReloadConfig(&context, request, &reloaded).error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_EQ(control_.show("s1").state(), v1::SESSION_STATE_RUNNING);
}

TEST_F(DaemonControlTest, ALeaseIsOneTokenForManySessions) {
  v1::OpenLeaseRequest open;
  v1::OpenLeaseResponse lease;
  open.add_devices(1);
  open.set_name("job");
  ASSERT_TRUE(call(&v1::Control::Stub::OpenLease, open, lease).ok());
  ASSERT_EQ(lease.token().size(), 64u);
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  for (size_t i = 0; i < 32; ++i) {
    request.token[i] = static_cast<uint8_t>(std::stoi(lease.token().substr(2 * i, 2), nullptr, 16));
  }
  AttachedClient first(daemon_.socket(), request), second(daemon_.socket(), request);
  EXPECT_EQ(first.devices().size(), 1u);
  EXPECT_EQ(control_.show("s1").lease(), lease.lease());
  EXPECT_EQ(control_.show("s2").lease(), lease.lease());
  EXPECT_THAT(control_.show("s1").devices(), ElementsAre(1));

  v1::CloseLeaseRequest close;
  v1::CloseLeaseResponse closed;
  close.set_lease(lease.lease());
  ASSERT_TRUE(call(&v1::Control::Stub::CloseLease, close, closed).ok());
  EXPECT_EQ(closed.sessions_ended(), 2u);
  EXPECT_TRUE(first.session().wait_ended());
  EXPECT_EQ(call(&v1::Control::Stub::CloseLease, close, closed).error_code(), grpc::StatusCode::NOT_FOUND);
  open.add_devices(9);
  EXPECT_EQ(call(&v1::Control::Stub::OpenLease, open, lease).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(DaemonControlTest, WatchTellsWhatThereIsAndEveryChange) {
  auto client = std::make_unique<AttachedClient>(daemon_.socket());
  grpc::ClientContext context;
  const auto stream = control_.stub().WatchSessions(&context, {});
  v1::SessionEvent event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.kind(), v1::SessionEvent::KIND_PRESENT);
  EXPECT_EQ(event.session().id(), "s1");
  client.reset();
  do {
    ASSERT_TRUE(stream->Read(&event));
  } while (event.kind() == v1::SessionEvent::KIND_CHANGED);
  EXPECT_EQ(event.kind(), v1::SessionEvent::KIND_ENDED);
  EXPECT_EQ(event.session().state(), v1::SESSION_STATE_ENDED);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(DaemonControlTest, WatchUpdatesFiguresAtAnInterval) {
  AttachedClient client(daemon_.socket());
  grpc::ClientContext context;
  v1::WatchSessionsRequest request;
  request.set_interval(0.1);
  const auto stream = control_.stub().WatchSessions(&context, request);
  v1::SessionEvent event;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.kind(), v1::SessionEvent::KIND_CHANGED);
  context.TryCancel();
}

TEST_F(DaemonControlTest, OneUsersWatchesAreLimited) {
  AttachedClient client(daemon_.socket());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::SessionEvent>>> streams;
  const auto open = [&] {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(control_.stub().WatchSessions(contexts.back().get(), {}));
    v1::SessionEvent event;
    return streams.back()->Read(&event);
  };
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(open());
  EXPECT_FALSE(open());
  const grpc::Status refused = streams.back()->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("16 watches of your user"));
  contexts[0]->TryCancel();
  EXPECT_TRUE(Eventually(open)) << "one has ended";
  for (const auto& context : contexts) context->TryCancel();
}

TEST_F(DaemonControlTest, OneUsersConnectionsAreLimited) {
  std::vector<UniqueFd> held;
  bool refused = false;
  for (int i = 0; i < 200 && !refused; ++i) {
    held.push_back(Must(ConnectUnix(daemon_.socket())));
    ASSERT_EQ(::write(held.back().get(), "PRI * HT", 8), 8);
    // gRPC greets a connection at once; one that is refused is closed.
    char byte = 0;
    // The end of the connection, or its reset where what was written had not been read.
    refused = ::recv(held.back().get(), &byte, 1, 0) <= 0;
  }
  EXPECT_TRUE(refused);
  EXPECT_GT(held.size(), 100u);
  held.clear();
  EXPECT_TRUE(Eventually([&] {
    ControlClient again(daemon_.socket());
    v1::KillSessionResponse response;
    return again.kill("s77", 0, "x", response).error_code() == grpc::StatusCode::NOT_FOUND;
  }));
}

TEST_F(DaemonControlTest, AFloodOfConnectionsLeavesNothing) {
  control_.list(true);
  const auto before = RestingFilesOf(daemon_.pid());
  ASSERT_TRUE(before);
  for (int i = 0; i < 30; ++i) {
    ControlClient(daemon_.socket()).list(true);
    const UniqueFd half = Must(ConnectUnix(daemon_.socket()));
    ASSERT_EQ(::write(half.get(), "PRI * HT", 8), 8);
  }
  EXPECT_EQ(RestingFilesOf(daemon_.pid()), before);
}

}  // namespace
}  // namespace flagos::testing
