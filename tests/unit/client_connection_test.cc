// SPDX-License-Identifier: Apache-2.0
// Attaching, against a peer that answers with whatever the test wants.
#include "client/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "proto/shm/layout.h"
#include "proto/socket/unix_socket.h"
#include "proto/wire/records.h"

namespace flagos::client {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRingBytes = kMinRingBytes;
constexpr uint64_t kArenaBytes = 1 << 20;

// Listens, accepts one connection, reads its request, and lets `answer` do the rest.
class Peer {
 public:
  explicit Peer(std::function<void(int socket, const AttachRequest&)> answer, int connections = 1) {
    path_ = std::filesystem::temp_directory_path() / ("flagos-test-" + std::to_string(::getpid()) + ".sock");
    ::unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this, answer = std::move(answer), connections] {
      for (int i = 0; i < connections; ++i) {
        connection_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        AttachRequest request{};
        if (ReceiveRecord(connection_.get(), std::as_writable_bytes(std::span(&request, 1)), nullptr, 5000).ok()) {
          answer(connection_.get(), request);
        }
      }
    });
  }
  ~Peer() {
    thread_.join();
    ::unlink(path_.c_str());
  }
  Endpoint endpoint() const {
    Endpoint endpoint;
    endpoint.kind = Endpoint::Kind::kUnix;
    endpoint.path = path_;
    return endpoint;
  }

 private:
  std::string path_;
  UniqueFd listener_;
  UniqueFd connection_;
  std::thread thread_;
};

// The regions of a session and what flagosd would say of them.
struct Offer {
  AttachReply reply = MakeAttachReply(Error::Ok());
  std::vector<DeviceRecord> devices = std::vector<DeviceRecord>(2);
  std::vector<UniqueFd> fds;

  Offer() {
    reply.version = kProtocolVersionMax;
    reply.features = kFeatures | uint64_t{1} << 63;  // one that only flagosd knows
    reply.session = 5;
    reply.generation = 1;
    reply.device_count = 2;
    reply.ring_bytes = kRingBytes;
    reply.arena_bytes = kArenaBytes;
    reply.descriptors = kAttachFdCount;
    CopyText(reply.vendor, "cpu");
    CopyText(reply.session_name, "s-5");
    CopyText(devices[1].name, "second");
    fds.push_back(std::move(CreateRegion("ring", RingRegionBytes(kRingBytes)).value()));
    fds.push_back(std::move(CreateRegion("executor", kExecutorRegionBytes).value()));
    fds.push_back(std::move(CreateRegion("arena", kArenaBytes).value()));
    auto [ours, theirs] = std::move(UnixPair().value());
    fds.push_back(std::move(theirs));
    executor_end = std::move(ours);
  }
  void send(int socket) {
    std::vector<int> raw;
    for (const UniqueFd& fd : fds) raw.push_back(fd.get());
    EXPECT_TRUE(SendRecord(socket, std::as_bytes(std::span(&reply, 1)), raw).ok());
    SendRecord(socket, std::as_bytes(std::span(devices)));
  }
  UniqueFd executor_end;
};

TEST(Connection, Opens) {
  Offer offer;
  AttachRequest seen{};
  Result<Connection> connection = MakeError(ErrorCode::kInternal, "");
  {
    const Peer peer([&](int socket, const AttachRequest& request) {
      seen = request;
      offer.send(socket);
    });
    connection = Open(peer.endpoint(), {"2.13.0", "/torch/lib", "/bin"});
  }
  ASSERT_TRUE(connection.ok()) << connection.error().message;
  EXPECT_EQ(seen.kind, static_cast<uint16_t>(AttachKind::kOpen));
  EXPECT_EQ(seen.pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(ReadText(seen.torch_version), "2.13.0");
  EXPECT_EQ(ReadText(seen.name), "client_test");
  EXPECT_EQ(connection.value().name, "s-5");
  EXPECT_EQ(connection.value().features, kFeatures);
  EXPECT_EQ(connection.value().ring_bytes, kRingBytes);
  EXPECT_EQ(connection.value().arena.size(), kArenaBytes);
  ASSERT_EQ(connection.value().devices.size(), 2u);
  EXPECT_EQ(ReadText(connection.value().devices[1].name), "second");
  EXPECT_FALSE(HasHungUp(connection.value().liveness.get()));
  offer.executor_end.reset();
  EXPECT_TRUE(HasHungUp(connection.value().liveness.get()));
}

TEST(Connection, NothingThere) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::kUnix;
  endpoint.path = "/nonexistent/flagosd.sock";
  const auto connection = Open(endpoint, {});
  ASSERT_FALSE(connection.ok());
  EXPECT_THAT(connection.error().message, HasSubstr("/nonexistent/flagosd.sock"));
  EXPECT_THAT(connection.error().message, HasSubstr("FLAGOS_ENDPOINT"));
}

TEST(Connection, NoProgramToEmbed) {
  Endpoint endpoint;
  endpoint.vendor = "cpu";
  const auto connection = Open(endpoint, {"2.13.0", "", "/nonexistent"});
  ASSERT_FALSE(connection.ok());
  EXPECT_THAT(connection.error().message, HasSubstr("/nonexistent/flagosd"));
}

TEST(Connection, AnEmbeddedDaemonThatEndsIsToldWithItsStatus) {
  const auto folder = std::filesystem::temp_directory_path() / ("flagos-test-bin-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file("/bin/false", folder / "flagosd");
  Endpoint endpoint;
  endpoint.vendor = "cpu";
  const auto connection = Open(endpoint, {"2.13.0", "", folder});
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(connection.ok());
  EXPECT_THAT(connection.error().message, HasSubstr("exit status 1"));
}

TEST(DevicesTest, ATimeOutIsAskedAgainAndAnAnswerStays) {
  const auto answer = [](int socket, AttachReply reply, uint32_t count) {
    reply.version = kProtocolVersionMax;
    reply.device_count = count;
    EXPECT_TRUE(SendRecord(socket, std::as_bytes(std::span(&reply, 1))).ok());
    const std::vector<DeviceRecord> devices(count);
    EXPECT_TRUE(SendRecord(socket, std::as_bytes(std::span(devices))).ok());
  };
  {
    const Peer peer([&](int socket, const AttachRequest&) {
      answer(socket, MakeAttachReply(MakeError(ErrorCode::kTimeout, "not ready within 60s")), 0);
    });
    ::setenv("FLAGOS_ENDPOINT", peer.endpoint().text().c_str(), 1);
    const DeviceList& none = Devices();
    EXPECT_EQ(none.count, 0u);
    EXPECT_THAT(none.error.message, HasSubstr("not ready within 60s"));
  }
  {
    int asked = 0;
    const Peer peer(
        [&](int socket, const AttachRequest& request) {
          EXPECT_EQ(request.kind, static_cast<uint16_t>(AttachKind::kDevices));
          answer(socket, MakeAttachReply(Error::Ok()), ++asked < 3 ? 0 : 2);  // not known yet, twice
        },
        3);
    EXPECT_EQ(Devices().count, 2u);
  }
  EXPECT_EQ(Devices().count, 2u) << "nobody answers there any more";
  ::unsetenv("FLAGOS_ENDPOINT");
}

// What a peer may answer instead; each must be an error that says why.
struct Refusal {
  const char* name;
  std::function<void(Offer&, int)> answer;
  const char* says;
};

class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, IsAnError) {
  Offer offer;
  const Peer peer([&](int socket, const AttachRequest&) { GetParam().answer(offer, socket); });
  const auto connection = Open(peer.endpoint(), {});
  ASSERT_FALSE(connection.ok());
  EXPECT_THAT(connection.error().message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(Connection, RefusalTest,
                         ::testing::Values(Refusal{"Closed", [](Offer&, int socket) { ::shutdown(socket, SHUT_RDWR); },
                                                   "closed the connection"},
                                           Refusal{"Garbage",
                                                   [](Offer& offer, int socket) {
                                                     offer.reply.magic[0] = 'X';
                                                     offer.send(socket);
                                                   },
                                                   "no flagosd"},
                                           Refusal{"Error",
                                                   [](Offer&, int socket) {
                                                     const AttachReply reply = MakeAttachReply(
                                                         MakeError(ErrorCode::kPermission, "not for you"));
                                                     SendRecord(socket, std::as_bytes(std::span(&reply, 1)));
                                                   },
                                                   "not for you"},
                                           Refusal{"Version",
                                                   [](Offer& offer, int socket) {
                                                     offer.reply.version = kProtocolVersionMax + 1;
                                                     offer.send(socket);
                                                   },
                                                   "protocol"},
                                           Refusal{"RingSize",
                                                   [](Offer& offer, int socket) {
                                                     offer.reply.ring_bytes = kRingBytes + 8;
                                                     offer.send(socket);
                                                   },
                                                   "cannot be"},
                                           Refusal{"RegionTooSmall",
                                                   [](Offer& offer, int socket) {
                                                     offer.reply.arena_bytes = kArenaBytes * 2;
                                                     offer.send(socket);
                                                   },
                                                   "sealed memfd"},
                                           Refusal{"MissingDescriptor",
                                                   [](Offer& offer, int socket) {
                                                     offer.fds.pop_back();
                                                     offer.send(socket);
                                                   },
                                                   "descriptors"},
                                           Refusal{"NoDevices",
                                                   [](Offer& offer, int socket) {
                                                     offer.reply.device_count = 0;
                                                     offer.devices.clear();
                                                     offer.send(socket);
                                                   },
                                                   "cannot be"},
                                           Refusal{"NoSession",
                                                   [](Offer& offer, int socket) {
                                                     offer.reply.session = 0;
                                                     offer.send(socket);
                                                   },
                                                   "session 0"},
                                           Refusal{"DeviceNameWithoutEnd",
                                                   [](Offer& offer, int socket) {
                                                     std::fill(std::begin(offer.devices[0].name),
                                                               std::end(offer.devices[0].name), 'x');
                                                     offer.send(socket);
                                                   },
                                                   "without an end"}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace flagos::client
