// SPDX-License-Identifier: Apache-2.0
// Reloading the configuration of a real flagosd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "tests/support/control_client.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"
#include "tests/support/service_manager.h"

namespace flagos::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DaemonReloadTest : public ::testing::Test {
 protected:
  DaemonReloadTest()
      : file_(folder_.write("flagosd.toml", "[pool]\nwarm = 1\n")),
        daemon_({.vendor = "null", .arguments = {"--config", file_, "--devices", "2"}}),
        control_(daemon_.socket()) {}
  grpc::Status reload(bool dry_run = false) {
    v1::ReloadConfigRequest request;
    request.set_dry_run(dry_run);
    grpc::ClientContext context;
    return control_.stub().ReloadConfig(&context, request, &reloaded_);
  }
  v1::ShowConfigResponse show() {
    v1::ShowConfigResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(control_.stub().ShowConfig(&context, {}, &response).ok());
    return response;
  }
  v1::ConfigKey key(const std::string& name) {
    const v1::ShowConfigResponse shown = show();
    for (const v1::ConfigKey& key : shown.keys()) {
      if (key.key() == name) return key;
    }
    return {};
  }
  bool has_children(size_t count) {
    return Eventually([&] { return ChildrenOf(daemon_.pid()).size() == count; });
  }
  static bool answers(AttachedClient& client) {
    return client.session().request({.kind = RecordKind::kListOperators}).has_value();
  }

  TemporaryFolder folder_;
  const std::string file_;
  DaemonProcess daemon_;
  ControlClient control_;
  v1::ReloadConfigResponse reloaded_;
};

TEST_F(DaemonReloadTest, ExecutorsFollowThePool) {
  ASSERT_TRUE(has_children(1));
  const std::string drop_in = folder_.write("conf.d/more.toml", "[pool]\nwarm = 3\n");
  ASSERT_TRUE(reload().ok());
  ASSERT_EQ(reloaded_.changes_size(), 1);
  EXPECT_EQ(reloaded_.changes(0).key(), "pool.warm");
  EXPECT_EQ(reloaded_.changes(0).running(), "1");
  EXPECT_EQ(reloaded_.changes(0).value(), "3");
  EXPECT_FALSE(reloaded_.changes(0).restart());
  EXPECT_TRUE(has_children(3));
  EXPECT_EQ(key("pool.warm").origin(), drop_in + ":2");
  EXPECT_THAT(show().files(), ElementsAre(file_, drop_in));
  std::filesystem::remove(drop_in);
  ASSERT_TRUE(reload().ok());
  EXPECT_TRUE(has_children(1));
  EXPECT_EQ(key("pool.warm").origin(), file_ + ":2");
}

TEST_F(DaemonReloadTest, AWrongFileChangesNothing) {
  AttachedClient client(daemon_.socket());
  EXPECT_FALSE(show().has_reload_ok());
  folder_.write("flagosd.toml", "[pool]\nwarm = 3\nworm = 1\n[session]\nring = \"1MiB\"\n");
  const grpc::Status refused = reload();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(
      refused.error_message(),
      "the configuration is wrong\n" + file_ +
          ":3: unknown key [pool] worm; did you mean warm?\nmend it, and reload again; the old configuration holds "
          "until then");
  EXPECT_EQ(key("pool.warm").value(), "1");
  EXPECT_EQ(key("session.ring").value(), "4MiB");
  EXPECT_FALSE(show().reload_ok());
  EXPECT_GT(show().reloaded(), 0);
  EXPECT_THAT(show().reload_error(), HasSubstr("worm"));
  EXPECT_THAT(daemon_.log(), HasSubstr("level=warn msg=\"configuration not reloaded"));
  EXPECT_TRUE(answers(client));
  folder_.write("flagosd.toml", "");
  EXPECT_TRUE(reload().ok());
  EXPECT_TRUE(show().reload_ok());
}

// The log is the one thing that may fail once the files are right.
TEST_F(DaemonReloadTest, ALogThatCannotBeMovedChangesNothing) {
  folder_.write("flagosd.toml", "[daemon]\nlog_file = \"/nonexistent/log\"\n[pool]\nwarm = 2\n");
  const grpc::Status refused = reload();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("\n" + file_ + ":2: cannot open the log file /nonexistent/log"));
  EXPECT_EQ(key("pool.warm").value(), "1");
  EXPECT_EQ(key("daemon.log_file").value(), "");
  EXPECT_TRUE(has_children(1));
}

TEST_F(DaemonReloadTest, WhatNeedsARestartIsSaidAndKept) {
  folder_.write("flagosd.toml", "[devices]\ninclude = [1]\n[session]\nmax_per_user = 7\n[pool]\nwarm = 1\n");
  ASSERT_TRUE(reload().ok());
  ASSERT_EQ(reloaded_.changes_size(), 2);
  EXPECT_EQ(reloaded_.changes(0).key(), "devices.include");
  EXPECT_TRUE(reloaded_.changes(0).restart());
  EXPECT_NE(reloaded_.changes(0).note(), "");
  EXPECT_EQ(key("devices.include").value(), "[]");
  EXPECT_EQ(key("devices.include").origin(), "default");
  EXPECT_EQ(key("session.max_per_user").value(), "7");
  EXPECT_EQ(key("devices.count").origin(), "flag --devices");
}

TEST_F(DaemonReloadTest, ADryRunChangesNothing) {
  folder_.write("flagosd.toml", "[pool]\nwarm = 2\n");
  ASSERT_TRUE(reload(true).ok());
  EXPECT_EQ(reloaded_.changes_size(), 1);
  EXPECT_EQ(key("pool.warm").value(), "1");
  EXPECT_FALSE(show().has_reload_ok());
}

TEST_F(DaemonReloadTest, NewSessionsHaveTheNewMemoryAndOldOnesKeepTheirs) {
  AttachedClient before(daemon_.socket());
  folder_.write("flagosd.toml", "[session]\nring = \"1MiB\"\narena = \"8MiB\"\n");
  ASSERT_TRUE(reload().ok());
  AttachedClient after(daemon_.socket());
  EXPECT_EQ(before.reply().ring_bytes, 4u << 20);
  EXPECT_EQ(after.reply().ring_bytes, 1u << 20);
  EXPECT_EQ(after.reply().arena_bytes, 8u << 20);
  EXPECT_EQ(control_.show("s1").ring_bytes(), 4u << 20);
  EXPECT_TRUE(answers(before));
  EXPECT_TRUE(answers(after));
}

TEST_F(DaemonReloadTest, SighupReloadsToo) {
  folder_.write("flagosd.toml", "[pool]\nwarm = 2\n[daemon]\nlog = \"json\"\n");
  daemon_.signal(SIGHUP);
  EXPECT_TRUE(has_children(2));
  EXPECT_EQ(key("daemon.log").value(), "json");
  EXPECT_THAT(daemon_.log(), HasSubstr("\"msg\":\"configuration reloaded\""));
  EXPECT_EQ(key("daemon.log_level").origin(), "flag --log-level") << "no file beats it";
  folder_.write("flagosd.toml", "[pool\n");
  daemon_.signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return show().has_reload_ok() && !show().reload_ok(); }));
  EXPECT_EQ(key("pool.warm").value(), "2");
}

TEST(DaemonReloadNoFileTest, ThereIsNothingToReload) {
  DaemonProcess daemon;
  ControlClient control(daemon.socket());
  v1::ReloadConfigResponse response;
  grpc::ClientContext context;
  const grpc::Status refused = control.stub().ReloadConfig(&context, {}, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("no configuration file"));
}

TEST(DaemonReloadNotifyTest, TheServiceManagerIsTold) {
  TemporaryFolder folder;
  const std::string file = folder.write("flagosd.toml", "");
  ServiceManager manager;
  DaemonProcess daemon({.vendor = "null", .arguments = {"--config", file}});
  EXPECT_THAT(manager.next(), HasSubstr("EXTEND_TIMEOUT_USEC="));
  EXPECT_EQ(manager.next(), "READY=1");
  for (const char* const text : {"[pool]\nwarm = 2\n", "nonsense"}) {
    folder.write("flagosd.toml", text);
    daemon.signal(SIGHUP);
    EXPECT_THAT(manager.next(), ::testing::MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
    EXPECT_EQ(manager.next(), "READY=1") << "whether it succeeded or not";
  }
}

}  // namespace
}  // namespace flagos::testing
