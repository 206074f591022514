// SPDX-License-Identifier: Apache-2.0
// An executor that is lost: what the client finds in its pages, and what flagosd remembers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "tests/support/control_client.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"

namespace flagos::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

DaemonProcess::Options Faulty() {
  return {.vendor = "faulty", .arguments = {"--vendor-dir", BuildFolder() + "/tests/vendors"}};
}

// Has `name` of the faulty vendor run, asynchronously.
void RunFaulty(SessionClient& client, const std::string& name, double number) {
  client.define_operator(1, "test::" + name, "", {});
  Argument argument;
  argument.tag = ArgTag::kDouble;
  client.define_signature(1, {.op = 1, .arguments = {argument}, .expected = {}});
  client.send({.kind = RecordKind::kCall, .subject = 1}, SessionClient::CallPayload({}, {}, Pack(number)));
}

TEST(DaemonLostTest, AnAbortIsToldWithItsSignalAndTheLastOperator) {
  DaemonProcess daemon(Faulty());
  AttachedClient client(daemon.socket());
  RunFaulty(client.session(), "abort", 0);
  ASSERT_TRUE(Eventually([&] { return client.page().state.load() == static_cast<uint64_t>(ExecutorState::kLost); }))
      << daemon.log();
  EXPECT_EQ(client.page().exit_signal.load(), SIGABRT);
  EXPECT_TRUE(client.executor_hung_up());

  ControlClient control(daemon.socket());
  v1::Session session;
  ASSERT_TRUE(Eventually([&] {
    session = control.show("s1");
    return session.state() == v1::SESSION_STATE_FAULTED;
  }));
  EXPECT_EQ(session.last_operator(), "test::abort");
  EXPECT_GT(session.last_sequence(), 0u);
  EXPECT_THAT(session.end_cause(), HasSubstr("executor was killed by signal 6 (SIGABRT)"));
  EXPECT_GT(session.ended(), session.started());
  EXPECT_THAT(daemon.log(), HasSubstr("last_operator=test::abort"));
}

TEST(DaemonLostTest, AKillInTheMiddleOfACallWakesItsWaiters) {
  DaemonProcess daemon(Faulty());
  AttachedClient client(daemon.socket());
  RunFaulty(client.session(), "stall", 60'000);
  ASSERT_TRUE(Eventually([&] { return client.page().last_operator.load() != 0; }));
  std::thread killer([&] {
    std::this_thread::sleep_for(100ms);
    ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGKILL);
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(client.session().request({.kind = RecordKind::kListOperators}).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  killer.join();
  EXPECT_TRUE(Eventually([&] { return client.page().exit_signal.load() == SIGKILL; }));
  EXPECT_EQ(ControlClient(daemon.socket()).show("s1").last_operator(), "test::stall");
}

TEST(DaemonLostTest, ALongCallIsAccountedForWhileItRuns) {
  DaemonProcess daemon(Faulty());
  AttachedClient client(daemon.socket());
  RunFaulty(client.session(), "stall", 60'000);
  ASSERT_TRUE(Eventually([&] { return client.page().last_operator.load() != 0; }));
  const uint64_t busy = client.page().busy_ns.load(), active = client.page().last_active_ns.load();
  EXPECT_TRUE(Eventually([&] { return client.page().busy_ns.load() > busy; }));
  EXPECT_GT(client.page().last_active_ns.load(), active);
}

TEST(DaemonLostTest, AnotherSessionIsUntouched) {
  DaemonProcess daemon(Faulty());
  AttachedClient victim(daemon.socket()), neighbour(daemon.socket());
  RunFaulty(victim.session(), "abort", 0);
  ASSERT_TRUE(victim.session().wait_ended());
  EXPECT_TRUE(neighbour.session().request({.kind = RecordKind::kListOperators}).has_value());
  AttachedClient later(daemon.socket());
  EXPECT_TRUE(later.session().request({.kind = RecordKind::kListOperators}).has_value());
}

TEST(DaemonLostTest, WhatWasHeldIsGivenBackThoughTheClientLives) {
  DaemonProcess daemon(Faulty());
  AttachedClient warm_up(daemon.socket());
  warm_up.close();
  const auto before = RestingFilesOf(daemon.pid());
  ASSERT_TRUE(before);
  std::vector<std::unique_ptr<AttachedClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<AttachedClient>(daemon.socket()));
    RunFaulty(clients.back()->session(), "abort", 0);
  }
  for (const auto& client : clients) EXPECT_TRUE(client->session().wait_ended());
  EXPECT_EQ(RestingFilesOf(daemon.pid()), before) << daemon.log();
}

TEST(DaemonLostTest, ASessionIsForgottenAfterItsTime) {
  TemporaryFolder folder;
  const std::string config = folder.write("flagosd.toml", "[session]\nfaulted_keep = \"300ms\"\n");
  DaemonProcess daemon({.vendor = "null", .arguments = {"--config", config}});
  AttachedClient client(daemon.socket());
  ControlClient control(daemon.socket());
  EXPECT_EQ(control.show("s1").state(), v1::SESSION_STATE_RUNNING);
  ::kill(static_cast<pid_t>(client.reply().executor_pid), SIGSEGV);
  EXPECT_TRUE(Eventually([&] { return control.list(true).empty(); }));
}

}  // namespace
}  // namespace flagos::testing
