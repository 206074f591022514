// SPDX-License-Identifier: Apache-2.0
// The program flagos-executor: how it starts, whom it follows, and that it ends in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/support/executor_process.h"
#include "tests/support/session_client.h"

namespace flagos::testing {
namespace {

using namespace std::chrono_literals;
using enum RecordKind;
using ::testing::HasSubstr;

// Within what time an executor must be gone; more under a sanitizer, which is slow at exit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr auto kSoon = 5000ms;
#else
constexpr auto kSoon = 1000ms;
#endif

ExecutorProcess::Options Faulty() {
  return {.vendor = "faulty", .vendor_dir = BuildFolder() + "/tests/vendors", .arguments = {}};
}

// Has `name` of the faulty vendor run, asynchronously.
void RunFaulty(SessionClient& client, const std::string& name, double number) {
  client.define_operator(1, "test::" + name, "", {});
  Argument argument;
  argument.tag = ArgTag::kDouble;
  client.define_signature(1, {.op = 1, .arguments = {argument}, .expected = {}});
  client.send({.kind = kCall, .subject = 1}, SessionClient::CallPayload({}, {}, Pack(number)));
}

void AwaitRunning(SessionClient& client) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (client.page().last_operator.load() == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_NE(client.page().last_operator.load(), 0u);
}

void ExpectEnded(ExecutorProcess& executor, std::string_view cause) {
  const auto ended = executor.receive();
  ASSERT_TRUE(ended.has_value()) << executor.log();
  EXPECT_EQ(ended->kind, static_cast<uint32_t>(ChannelKind::kEnded));
  EXPECT_THAT(ReadText(ended->message), HasSubstr(cause));
}

// An executor that serves a session of ours.
struct Served {
  explicit Served(const ExecutorProcess::Options& options = {}, uint32_t flags = 0)
      : client(memory), executor(options) {
    executor.await_ready();
    liveness = executor.assign_and_wait(memory, owner.pidfd(), flags);
  }

  const SessionMemory memory;
  SessionClient client;
  IdleProcess owner;
  ExecutorProcess executor;
  UniqueFd liveness;
};

TEST(ExecutorProcessTest, SaysWhatItHas) {
  ExecutorProcess executor(
      {.vendor = "null", .vendor_dir = "", .arguments = {"--devices", "0,2", "--option", "devices=3"}});
  const auto ready = executor.receive();
  ASSERT_TRUE(ready.has_value()) << executor.log();
  EXPECT_EQ(ready->kind, static_cast<uint32_t>(ChannelKind::kReady));
  EXPECT_EQ(ready->status, 0u);
  EXPECT_EQ(ReadText(ready->vendor), "null");
  EXPECT_EQ(ReadText(ready->torch_version), "");
  const auto devices = executor.receive_devices(ready->device_count);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1].uuid[15], 2);
}

TEST(ExecutorProcessTest, ServesASessionInAnotherProcess) {
  Served served;
  EXPECT_TRUE(served.client.request({.kind = kListOperators})->error.ok());
  served.client.send({.kind = kClose});
  ExpectEnded(served.executor, "closed the session");
  EXPECT_EQ(served.executor.wait(kSoon), 0);
  EXPECT_EQ(served.client.page().state.load(), static_cast<uint64_t>(ExecutorState::kEnded));
}

TEST(ExecutorProcessTest, EndsAtOnceWithItsClientWhateverTheDispatchThreadDoes) {
  Served served(Faulty());
  RunFaulty(served.client, "stall", 60'000);
  AwaitRunning(served.client);
  served.owner.kill();
  EXPECT_EQ(served.executor.wait(kSoon), 0);
  ExpectEnded(served.executor, "client process has ended");
}

TEST(ExecutorProcessTest, EndsWhenTheClientClosesItsSession) {
  Served served;
  served.liveness.reset();
  EXPECT_EQ(served.executor.wait(kSoon), 0);
  ExpectEnded(served.executor, "client has closed");
}

TEST(ExecutorProcessTest, AForkedChildDoesNotKeepTheSessionOfItsParent) {
  Served served;
  const IdleProcess child;  // holds a copy of the liveness socket
  served.liveness.reset();
  EXPECT_EQ(served.executor.wait(200ms), std::nullopt);
  served.owner.kill();
  EXPECT_EQ(served.executor.wait(kSoon), 0);
}

TEST(ExecutorProcessTest, EndsWithFlagosdBeforeItHasASession) {
  ExecutorProcess executor;
  executor.await_ready();
  executor.close_channel();
  EXPECT_EQ(executor.wait(kSoon), 0);
}

TEST(ExecutorProcessTest, EndsWhenToldBeforeItHasASession) {
  ExecutorProcess executor;
  executor.await_ready();
  executor.send_end("not needed");
  ExpectEnded(executor, "without a session");
  EXPECT_EQ(executor.wait(kSoon), 0);
}

TEST(ExecutorProcessTest, GoesOnWithoutFlagosd) {
  Served served;
  served.executor.close_channel();
  EXPECT_EQ(served.executor.wait(200ms), std::nullopt);
  EXPECT_TRUE(served.client.request({.kind = kFence})->error.ok());
  served.liveness.reset();
  EXPECT_EQ(served.executor.wait(kSoon), 0);
}

TEST(ExecutorProcessTest, AnEmbeddedSessionEndsWithFlagosd) {
  Served served({}, kEndWithDaemon);
  served.executor.close_channel();
  EXPECT_EQ(served.executor.wait(kSoon), 0);
  EXPECT_TRUE(served.client.wait_ended());
  EXPECT_THAT(served.client.page().end_cause, HasSubstr("flagosd"));
}

TEST(ExecutorProcessTest, FinishesWhatRunsWhenToldToEnd) {
  Served served(Faulty());
  RunFaulty(served.client, "stall", 300);
  AwaitRunning(served.client);
  const auto pending = served.client.ask({.kind = kFence});
  served.executor.send_end("the device is drained");
  const auto reply = served.client.answer(pending);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->error.code, ErrorCode::kDeviceLost);
  EXPECT_THAT(reply->error.message, HasSubstr("the device is drained"));
  ExpectEnded(served.executor, "the device is drained");
  EXPECT_EQ(served.executor.wait(kSoon), 0);
}

TEST(ExecutorProcessTest, SigtermEndsItInOrder) {
  Served served;
  served.executor.signal(SIGINT);  // the terminal's, meant for the client
  EXPECT_TRUE(served.client.request({.kind = kFence})->error.ok());
  served.executor.signal(SIGTERM);
  ExpectEnded(served.executor, "signal 15");
  EXPECT_EQ(served.executor.wait(kSoon), 0);
}

TEST(ExecutorProcessTest, TellsFlagosdOfAMalformedRecord) {
  Served served;
  served.client.send({.kind = static_cast<RecordKind>(999)});
  const auto ended = served.executor.receive();
  ASSERT_TRUE(ended.has_value());
  EXPECT_NE(ended->status, 0u);
  EXPECT_THAT(ReadText(ended->message), HasSubstr("record 1 (unknown) is malformed"));
  EXPECT_EQ(served.executor.wait(kSoon), 1);
}

TEST(ExecutorProcessTest, ACrashLeavesItsOperator) {
  Served served(Faulty());
  RunFaulty(served.client, "abort", 0);
  EXPECT_EQ(served.executor.wait(), -SIGABRT);
  EXPECT_EQ(served.client.page().running_sequence.load(), 3u);
  const uint32_t place = served.client.page().last_operator.load();
  ASSERT_NE(place, 0u);
  EXPECT_STREQ(served.client.page().operator_names + place - 1, "test::abort");
}

TEST(ExecutorProcessTest, RefusesMemoryThatCanShrink) {
  const IdleProcess owner;
  ExecutorProcess executor;
  executor.await_ready();
  const SessionMemory memory;
  ChannelRecord record{};
  record.kind = static_cast<uint32_t>(ChannelKind::kAssign);
  record.session = 8;
  record.ring_bytes = memory.ring_bytes;
  record.arena_bytes = memory.arena_bytes;
  const UniqueFd unsealed(::memfd_create("flagos-test-unsealed", MFD_CLOEXEC));
  const int fds[kChannelFdCount] = {
      unsealed.get(), memory.executor_fd.get(), memory.arena_fd.get(), owner.pidfd(), owner.pidfd(), owner.pidfd(),
      owner.pidfd()};
  executor.send(record, fds);
  const auto assigned = executor.receive();
  ASSERT_TRUE(assigned.has_value());
  EXPECT_EQ(assigned->kind, static_cast<uint32_t>(ChannelKind::kAssigned));
  EXPECT_NE(assigned->status, 0u);
  EXPECT_THAT(ReadText(assigned->message), HasSubstr("sealed"));
  EXPECT_EQ(executor.wait(kSoon), 1);
}

TEST(ExecutorProcessTest, InheritsNothing) {
  int leaked[2];
  ASSERT_EQ(::pipe(leaked), 0);
  ExecutorProcess executor;
  executor.await_ready();
  ::close(leaked[1]);
  char byte = 0;
  EXPECT_EQ(::read(leaked[0], &byte, 1), 0);  // nobody else holds the writing end
  ::close(leaked[0]);
}

}  // namespace
}  // namespace flagos::testing
