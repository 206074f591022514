// SPDX-License-Identifier: Apache-2.0
// The page of metrics, and the server that gives it out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "proto/shm/memfd.h"
#include "server/daemon/clients/socket_file.h"
#include "server/daemon/metrics/address.h"
#include "server/daemon/metrics/exporter.h"
#include "server/daemon/metrics/exposition.h"
#include "server/daemon/metrics/snapshot.h"

namespace flagos::daemon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Exposition, WritesFamiliesWithTheirSamples) {
  Exposition page(10);
  page.family("flagos_a_bytes", MetricType::kGauge, "What a is.");
  page.sample({{"device", "0"}, {"model", "x"}}, 4096);
  page.sample({}, 0.25);
  page.family("flagos_b_total", MetricType::kCounter, "What b is.");
  page.sample({{"sid", "s1"}}, 1e18);
  EXPECT_EQ(page.text(),
            "# HELP flagos_a_bytes What a is.\n"
            "# TYPE flagos_a_bytes gauge\n"
            "flagos_a_bytes{device=\"0\",model=\"x\"} 4096\n"
            "flagos_a_bytes 0.25\n"
            "# HELP flagos_b_total What b is.\n"
            "# TYPE flagos_b_total counter\n"
            "flagos_b_total{sid=\"s1\"} 1e+18\n");
}

TEST(Exposition, ReadsBackTheSameNumber) {
  for (const double value : {0.1, 1.0 / 3, 123456789012345678.0, 5e-324, std::numeric_limits<double>::max()}) {
    Exposition page(1);
    page.family("x", MetricType::kGauge, "y");
    page.sample({}, value);
    EXPECT_EQ(std::strtod(page.text().c_str() + page.text().rfind(' '), nullptr), value);
  }
}

TEST(Exposition, EscapesWhatProgramsCallThemselves) {
  Exposition page(10);
  page.family("x", MetricType::kGauge, "y");
  page.sample({{"owner", "a\"b\\c\nd\xff"}}, 1);
  EXPECT_THAT(page.text(), HasSubstr("x{owner=\"a\\\"b\\\\c\\nd?\"} 1\n"));
}

TEST(Exposition, DropsAndCountsWhatIsTooMuch) {
  Exposition page(2);
  page.family("x", MetricType::kGauge, "y");
  for (int i = 0; i < 5; ++i) page.sample({}, i);
  page.family("unseen", MetricType::kGauge, "leaves no trace");
  page.sample({}, 1);
  EXPECT_EQ(page.series(), 2u);
  EXPECT_EQ(page.dropped(), 4u);
  EXPECT_THAT(page.text(), Not(HasSubstr("unseen")));
}

MetricsSnapshot Example() {
  MetricsSnapshot snapshot;
  v1::Device& device = *snapshot.devices.add_devices();
  device.set_index(3);
  device.set_name("Model X");
  device.set_uuid("abc");
  device.set_health(v1::DEVICE_HEALTH_HEALTHY);
  device.set_memory_total(1000);
  device.set_memory_used(250);
  device.mutable_telemetry()->set_temperature(41.5);
  v1::Session& session = snapshot.sessions.emplace_back();
  session.set_id("s7");
  session.set_owner("ann");
  session.set_state(v1::SESSION_STATE_RUNNING);
  session.set_memory_used(250);
  session.set_calls(12);
  session.set_device_time(1.5);
  snapshot.sessions_started = 7;
  snapshot.sessions_lost = 2;
  snapshot.sessions_readopted = 4;
  snapshot.sessions_awaited = 1;
  snapshot.restarts = 3;
  return snapshot;
}

TEST(MetricsPage, TellsWhatTheSnapshotHas) {
  const std::string page = RenderMetrics(Example(), 1000);
  for (const char* line : {
           "flagos_device_memory_used_bytes{device=\"3\",uuid=\"abc\",model=\"Model X\"} 250\n",
           "flagos_device_temperature_celsius{device=\"3\",uuid=\"abc\",model=\"Model X\"} 41.5\n",
           "flagos_device_health_state{device=\"3\",uuid=\"abc\",model=\"Model X\",state=\"healthy\"} 1\n",
           "flagos_device_health_state{device=\"3\",uuid=\"abc\",model=\"Model X\",state=\"unhealthy\"} 0\n",
           "flagos_session_state{sid=\"s7\",state=\"RUNNING\"} 1\n",
           "flagos_session_calls_total{sid=\"s7\"} 12\n",
           "flagos_session_device_seconds_total{sid=\"s7\"} 1.5\n",
           "flagos_sessions_started_total 7\n",
           "flagos_sessions_lost_total 2\n",
           "flagos_sessions_readopted_total 4\n",
           "flagos_orphans 1\n",
           "flagos_daemon_restarts_total 3\n",
           "flagos_config_reload_ok 1\n",
           "flagos_series_dropped 0\n",
       }) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  // What a device does not tell has no sample, and so no head.
  EXPECT_THAT(page, Not(HasSubstr("flagos_device_power_watts")));
}

TEST(MetricsPage, HasTheAuditLogWhereThereIsOne) {
  MetricsSnapshot snapshot = Example();
  EXPECT_THAT(RenderMetrics(snapshot, 1000), Not(HasSubstr("flagos_audit")));
  snapshot.audit = MetricsSnapshot::Audit{.records = 12, .failures = 3};
  EXPECT_THAT(RenderMetrics(snapshot, 1000), HasSubstr("flagos_audit_records_total 12\n"));
  EXPECT_THAT(RenderMetrics(snapshot, 1000), HasSubstr("flagos_audit_failures_total 3\n"));
}

TEST(MetricsPage, SaysWhatItLeavesOut) {
  const std::string page = RenderMetrics(Example(), 3);
  EXPECT_THAT(page, Not(HasSubstr("flagos_session_calls_total")));
  EXPECT_THAT(page, Not(HasSubstr("flagos_series_dropped 0\n")));
}

TEST(MetricsAddress, IsNumericAndHasAPort) {
  for (const char* good : {"127.0.0.1:9466", "[::1]:9466", "0.0.0.0:1", "127.0.0.1:65535"}) {
    EXPECT_TRUE(ParseMetricsAddress(good).has_value()) << good;
  }
  for (const char* bad :
       {"", "9466", ":9466", "localhost:9466", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:9466x", "::1:9466"}) {
    EXPECT_FALSE(ParseMetricsAddress(bad).has_value()) << bad;
  }
}

class MetricsServer : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = SocketFile::Create(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    auto exporter = MetricsExporter::Start("", file_->fd());
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    exporter_ = *std::move(exporter);
  }

  UniqueFd connect() const {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static void send(const UniqueFd& socket, const std::string& text) {
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // What comes until the other side closes.
  static std::string receive(const UniqueFd& socket) {
    std::string text;
    char bytes[4096];
    for (ssize_t count = 0; (count = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;)
      text.append(bytes, static_cast<size_t>(count));
    return text;
  }
  std::string ask(const std::string& request) const {
    const UniqueFd socket = connect();
    send(socket, request);
    return receive(socket);
  }
  std::string get(const std::string& target) const {
    return ask("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("metrics" + std::to_string(::getpid()))).string();
  std::unique_ptr<SocketFile> file_;
  std::unique_ptr<MetricsExporter> exporter_;
};

TEST_F(MetricsServer, GivesOutTheLatestPage) {
  EXPECT_THAT(get("/metrics"), StartsWith("HTTP/1.1 503 "));
  exporter_->publish("first 1\n");
  exporter_->publish("second 2\n");
  EXPECT_THAT(get("/metrics"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("text/plain; version=0.0.4"),
                                     HasSubstr("\r\n\r\nsecond 2\n")));
  EXPECT_THAT(get("/metrics?x=1"), HasSubstr("second 2"));
}

TEST_F(MetricsServer, RefusesEverythingElse) {
  exporter_->publish("x 1\n");
  EXPECT_THAT(get("/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD")));
  EXPECT_EQ(ask("\x16\x03\x01 no HTTP at all\r\n\r\n"), "");
  EXPECT_EQ(ask("GET /metrics HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"), "");
  EXPECT_THAT(get("/metrics"), HasSubstr("x 1"));
}

TEST_F(MetricsServer, AnswersSeveralRequestsOfOneConnection) {
  exporter_->publish("x 1\n");
  const UniqueFd socket = connect();
  send(socket, "HEAD /metrics HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string text = receive(socket);
  EXPECT_EQ(text.find("x 1\n"), text.rfind("x 1\n"));
  EXPECT_NE(text.find("HTTP/1.1 200", 5), std::string::npos);
}

TEST_F(MetricsServer, TakesSoManyConnectionsAndNoMore) {
  exporter_->publish("x 1\n");
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 32; ++i) idle.push_back(connect());
  EXPECT_EQ(get("/metrics"), "");
  idle.clear();
  // The server sees their ends one by one: there may be room for one connection and not yet for two.
  std::string page;
  for (int i = 0; i < 100 && page.empty(); ++i) {
    page = get("/metrics");
    if (page.empty()) ::usleep(10'000);
  }
  EXPECT_THAT(page, HasSubstr("x 1"));
}

TEST_F(MetricsServer, EndsWithConnectionsOpen) {
  const UniqueFd socket = connect();
  send(socket, "HEAD / HTTP/1.1\r\n\r\n");
  char byte = 0;
  ASSERT_EQ(::recv(socket.get(), &byte, 1, MSG_PEEK), 1);  // it was accepted
  send(socket, "GET /metr");
  exporter_.reset();
  EXPECT_THAT(receive(socket), StartsWith("HTTP/1.1 404 "));
}

}  // namespace
}  // namespace flagos::daemon
