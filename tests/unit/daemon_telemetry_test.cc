// SPDX-License-Identifier: Apache-2.0
// flagosd's view of its monitor: the real one of the CPU vendor, and scripts that break their word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>

#include "server/daemon/telemetry/telemetry.h"
#include "server/daemon/telemetry/view.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"
#include "tests/support/run_loop.h"
#include "vendors/cpu/identity.h"

namespace flagos::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class TelemetryTest : public ::testing::Test {
 protected:
  TelemetryTest() : loop_(*EventLoop::Create()) {
    config_.devices.vendor = "cpu";
    config_.devices.count = 2;
    config_.devices.telemetry = 100ms;
    config_.monitor = testing::BuildFolder() + "/bin/flagos-monitor";
    config_.vendor_dir = testing::BuildFolder() + "/vendors";
  }
  void start() {
    telemetry_ = std::make_unique<Telemetry>(*loop_, config_);
    telemetry_->start();
  }
  // Starts a shell script as the monitor; its channel is descriptor 3.
  void start_script(const std::string& script) {
    config_.monitor = folder_.write("monitor", "#!/bin/sh\n" + script);
    ::chmod(config_.monitor.c_str(), 0755);
    start();
  }
  // A file with a message, for a script to send.
  std::string message(const std::vector<DeviceReading>& readings) const {
    ByteWriter out;
    EncodeReadings(out, readings);
    return folder_.write("message", std::string(reinterpret_cast<const char*>(out.data()), out.size()));
  }
  static std::vector<DeviceReading> Warm() {
    DeviceReading reading;
    reading.uuid = cpu::UuidOf(0);
    reading.temperature = 41;
    return {reading};
  }
  bool run_until(const std::function<bool()>& condition) { return testing::RunUntil(*loop_, condition); }
  bool fresh(uint32_t index = 0) const {
    const auto latest = telemetry_->latest(cpu::UuidOf(index));
    return latest && latest->figures != nullptr;
  }
  v1::Device shown() const {
    DeviceRecord record{};
    const DeviceUuid uuid = cpu::UuidOf(0);
    std::copy(uuid.begin(), uuid.end(), record.uuid);
    v1::Device device;
    Show(*telemetry_, record, device);
    return device;
  }

  testing::TemporaryFolder folder_;
  Config config_;
  const std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Telemetry> telemetry_;
};

TEST_F(TelemetryTest, HoldsTheLastReadingOfEachDevice) {
  start();
  ASSERT_TRUE(
      run_until([&] { return fresh(0) && fresh(1) && telemetry_->latest(cpu::UuidOf(0))->figures->utilisation; }));
  EXPECT_FALSE(telemetry_->latest(cpu::UuidOf(2)));
  EXPECT_EQ(telemetry_->problem(), "");
  const v1::Device device = shown();
  EXPECT_GT(device.telemetry().memory_total(), 0u);
  EXPECT_LT(device.telemetry().age(), 60);
  EXPECT_TRUE(device.telemetry().has_utilisation());
  EXPECT_FALSE(device.telemetry().has_ecc_corrected());
}

TEST_F(TelemetryTest, EndsItsMonitorWhenItStops) {
  start();
  ASSERT_TRUE(run_until([&] { return fresh(); }));
  const pid_t monitor = telemetry_->pid();
  ASSERT_GT(monitor, 0);
  telemetry_->stop();
  EXPECT_TRUE(testing::Eventually([&] { return testing::IsGone(monitor); }));
  EXPECT_EQ(telemetry_->pid(), -1);
}

TEST_F(TelemetryTest, ReplacesAMonitorThatDied) {
  start();
  ASSERT_TRUE(run_until([&] { return fresh(); }));
  const pid_t first = telemetry_->pid();
  ::kill(first, SIGKILL);
  ASSERT_TRUE(run_until([&] { return !telemetry_->problem().empty(); }));
  EXPECT_THAT(telemetry_->problem(), HasSubstr("killed by signal 9"));
  EXPECT_TRUE(run_until([&] { return telemetry_->problem().empty() && telemetry_->pid() > 0; }));
  EXPECT_NE(telemetry_->pid(), first);
}

TEST_F(TelemetryTest, TellsNoOldFiguresAndReplacesAMonitorThatHangs) {
  start();
  ASSERT_TRUE(run_until([&] { return fresh(); }));
  const pid_t first = telemetry_->pid();
  ::kill(first, SIGSTOP);
  ASSERT_TRUE(run_until([&] { return !fresh(); }));
  const v1::Device device = shown();
  EXPECT_GT(device.telemetry().age(), 0.3);
  EXPECT_FALSE(device.telemetry().has_memory_used());
  ASSERT_TRUE(run_until([&] { return !telemetry_->problem().empty(); }));
  EXPECT_THAT(telemetry_->problem(), HasSubstr("says nothing"));
  EXPECT_TRUE(run_until([&] { return fresh(); }));
  EXPECT_NE(telemetry_->pid(), first);
}

TEST_F(TelemetryTest, KillsAMonitorThatSendsGarbage) {
  start_script("printf garbage >&3; exec sleep 60\n");
  const pid_t first = telemetry_->pid();
  ASSERT_TRUE(run_until([&] { return !telemetry_->problem().empty(); }));
  EXPECT_THAT(telemetry_->problem(), HasSubstr("does not decode"));
  EXPECT_TRUE(run_until([&] { return telemetry_->pid() != first; }));
}

TEST_F(TelemetryTest, RefusesMessagesThatAreTooLong) {
  start_script("dd if=/dev/zero bs=100000 count=1 2>/dev/null >&3; exec sleep 60\n");
  ASSERT_TRUE(run_until([&] { return !telemetry_->problem().empty(); }));
  EXPECT_THAT(telemetry_->problem(), HasSubstr("does not decode"));
}

TEST_F(TelemetryTest, TakesWhatAMonitorSaidBeforeItsEnd) {
  start_script("cat '" + message(Warm()) + "' >&3\n");
  ASSERT_TRUE(run_until([&] { return fresh(); }));
  EXPECT_EQ(shown().telemetry().temperature(), 41);
}

TEST_F(TelemetryTest, KeepsAMonitorsReason) {
  config_.devices.vendor = "cpu";
  config_.devices.count = 0;
  config_.vendors["cpu"].options["devices"] = "none";
  start();
  ASSERT_TRUE(run_until([&] { return !telemetry_->problem().empty(); }));
  EXPECT_THAT(telemetry_->problem(), HasSubstr("option devices is \"none\""));
  ASSERT_TRUE(run_until([&] { return telemetry_->pid() == -1; }));
  EXPECT_THAT(telemetry_->problem(), HasSubstr("option devices is \"none\"")) << "rather than its exit code";
  EXPECT_EQ(shown().telemetry().problem(), telemetry_->problem());
}

TEST_F(TelemetryTest, GoesOnWithoutTheProgram) {
  config_.monitor = folder_.path() + "/absent";
  start();
  EXPECT_THAT(telemetry_->problem(), HasSubstr("install flagos-monitor"));
}

TEST_F(TelemetryTest, StartsNothingWhereThereIsNothingToWatch) {
  const auto watched = [&](const auto& change) {
    Config config = config_;
    change(config);
    return Telemetry(*loop_, config).watched();
  };
  EXPECT_TRUE(watched([](Config&) {}));
  EXPECT_FALSE(watched([](Config& c) { c.devices.vendor = "null"; }));
  EXPECT_FALSE(watched([](Config& c) { c.devices.telemetry = 0s; }));
  EXPECT_FALSE(watched([](Config& c) { c.embedded = true; })) << "nobody could ask";
  EXPECT_FALSE(watched([](Config& c) { c.monitor.clear(); }));
  config_.devices.vendor = "null";
  start();
  EXPECT_EQ(telemetry_->pid(), -1);
  EXPECT_FALSE(shown().has_telemetry());
}

TEST_F(TelemetryTest, FollowsAnIntervalThatChanges) {
  start();
  ASSERT_TRUE(run_until([&] { return fresh(); }));
  const pid_t first = telemetry_->pid();
  telemetry_->config_changed();
  EXPECT_EQ(telemetry_->pid(), first) << "nothing has changed";
  config_.devices.telemetry = 200ms;
  telemetry_->config_changed();
  ASSERT_TRUE(run_until([&] { return fresh() && telemetry_->pid() != first; }));
  EXPECT_EQ(telemetry_->problem(), "");
  EXPECT_TRUE(testing::IsGone(first));
  config_.devices.telemetry = 0ms;
  telemetry_->config_changed();
  ASSERT_TRUE(run_until([&] { return telemetry_->pid() < 0; }));
  EXPECT_FALSE(telemetry_->watched());
  config_.devices.telemetry = 100ms;
  telemetry_->config_changed();
  EXPECT_TRUE(run_until([&] { return fresh(); }));
}

}  // namespace
}  // namespace flagos::daemon
