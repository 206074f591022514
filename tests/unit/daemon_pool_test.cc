// SPDX-License-Identifier: Apache-2.0
// The warm pool with programs that fail as executors can. daemon_attach_test.cc has the real one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "server/common/strings.h"
#include "server/daemon/executors/pidfd_handle.h"
#include "server/daemon/executors/pool.h"
#include "tests/support/daemon_process.h"
#include "tests/support/executor_process.h"
#include "tests/support/run_loop.h"

namespace flagos::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Taken = absl::StatusOr<std::unique_ptr<ExecutorProcess>>;

class ExecutorPoolTest : public ::testing::Test {
 protected:
  ExecutorPoolTest() : loop_(*EventLoop::Create()) {
    config_.devices.vendor = "null";
    config_.executor = testing::BuildFolder() + "/bin/flagos-executor";
    config_.vendor_dir = testing::BuildFolder() + "/vendors";
  }
  // An executor that is a shell script.
  void use_script(const std::string& body) {
    config_.executor = folder_.write("executor", "#!/bin/sh\n" + body + "\n");
    ::chmod(config_.executor.c_str(), 0755);
  }
  void start() {
    pool_ = std::make_unique<ExecutorPool>(
        *loop_, config_,
        ExecutorPool::Observer{.ready = [this](const auto&) { ++ready_; },
                               .failed = [this](const auto&, const auto&) { ++failed_; }});
  }
  // Runs the loop until `condition`; false after `patience`.
  bool run_until(const std::function<bool()>& condition, Clock::duration patience = 20s) {
    return testing::RunUntil(*loop_, condition, patience);
  }
  Taken take() {
    std::optional<Taken> taken;
    const auto ticket = pool_->take({}, [&](Taken executor) { taken = std::move(executor); });
    return run_until([&] { return taken.has_value(); }) ? *std::move(taken)
                                                        : Taken(absl::DeadlineExceededError("nothing came"));
  }

  testing::TemporaryFolder folder_;
  Config config_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ExecutorPool> pool_;
  int ready_ = 0, failed_ = 0;
};

TEST_F(ExecutorPoolTest, HoldsExecutorsReadyAndReplacesWhatIsTaken) {
  config_.pool.warm = 2;
  config_.devices.count = 3;
  start();
  pool_->keep({});
  ASSERT_TRUE(run_until([&] { return pool_->warm(2) == 2; }));
  EXPECT_EQ(pool_->warm(3), 0u) << "there are three";
  auto taken = take();
  ASSERT_TRUE(taken.ok()) << MessageOf(taken.status());
  EXPECT_EQ((*taken)->vendor(), "null");
  EXPECT_EQ((*taken)->devices().size(), 3u);
  EXPECT_TRUE(run_until([&] { return ready_ == 3 && pool_->warm(0) == 2; }));
  pool_->drop({});
  EXPECT_TRUE(run_until([&] { return pool_->warm(0) == 0; })) << "what nobody wants is ended";
}

TEST_F(ExecutorPoolTest, KeepsSetsApart) {
  config_.devices.count = 4;
  start();
  pool_->keep({1, 3});
  ASSERT_TRUE(run_until([&] { return pool_->warm(1) == 1; }));
  EXPECT_EQ(pool_->warm(0), 0u);
  EXPECT_EQ(pool_->warm(3), 1u);
  auto taken = take();  // of all four: a cold start
  ASSERT_TRUE(taken.ok()) << MessageOf(taken.status());
  EXPECT_EQ((*taken)->devices().size(), 4u);
}

TEST_F(ExecutorPoolTest, HoldsNoMoreReadyThanAllSetsTogetherMayHave) {
  config_.devices.count = 4;
  config_.pool.max_warm = 2;
  start();
  pool_->keep({});
  pool_->keep({1});
  pool_->keep({2});
  ASSERT_TRUE(run_until([&] { return pool_->warm(1) == 2; }));
  EXPECT_EQ(pool_->warm(2), 1u) << "that of all devices; the set that came last has none";
  std::optional<Taken> cold;
  const auto ticket = pool_->take({2}, [&](Taken executor) { cold = std::move(executor); });
  ASSERT_TRUE(run_until([&] { return cold.has_value(); }));
  EXPECT_TRUE(cold->ok()) << "it is started for who asks";
  pool_->drop({1});
  EXPECT_TRUE(run_until([&] { return pool_->warm(2) == 2 && pool_->warm(1) == 1; })) << "its turn has come";
}

TEST_F(ExecutorPoolTest, ProbesOnceWhereNoneAreKept) {
  config_.pool.warm = 0;
  start();
  pool_->probe({});
  ASSERT_TRUE(run_until([&] { return ready_ == 1; }));
  EXPECT_TRUE(run_until([&] { return pool_->warm(0) == 0; }));
}

TEST_F(ExecutorPoolTest, StartsOneWhereAProbeAndATakerWantOne) {
  ASSERT_TRUE(testing::Eventually([] { return testing::ChildrenOf(::getpid()).empty(); })) << "of other tests";
  start();
  pool_->keep({});
  pool_->probe({});
  pool_->drop({});  // an embedded daemon, once its only session asks
  std::optional<Taken> taken;
  const auto ticket = pool_->take({}, [&](Taken executor) { taken = std::move(executor); });
  ASSERT_TRUE(run_until([&] { return !testing::ChildrenOf(::getpid()).empty(); }));
  EXPECT_EQ(testing::ChildrenOf(::getpid()).size(), 1u);
  ASSERT_TRUE(run_until([&] { return taken.has_value(); }));
  EXPECT_EQ(testing::ChildrenOf(::getpid()).size(), 1u);
}

TEST_F(ExecutorPoolTest, EndsStartsThatNobodyWantsAnyMore) {
  ASSERT_TRUE(testing::Eventually([] { return testing::ChildrenOf(::getpid()).empty(); })) << "of other tests";
  use_script("exec sleep 60");
  start();
  pool_->keep({});
  ASSERT_TRUE(run_until([&] { return !testing::ChildrenOf(::getpid()).empty(); }));
  pool_->drop({});
  EXPECT_TRUE(run_until([&] { return testing::ChildrenOf(::getpid()).empty(); }));
  EXPECT_EQ(failed_, 0);
}

TEST_F(ExecutorPoolTest, GivesTheExecutorsOwnWordsToWhoWaits) {
  use_script("echo 'libtorch_cpu.so: cannot open shared object file' >&2; exit 3");
  start();
  const auto taken = take();
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("ended with exit code 3 before it was ready"));
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("libtorch_cpu.so: cannot open"));
}

TEST_F(ExecutorPoolTest, KeepsTheEndOfALongOutput) {
  use_script("for i in 1 2 3 4 5 6 7 8 9; do printf '%01500d\\n' 7; done; echo 'the reason' >&2; exit 3");
  start();
  const std::string text = MessageOf(take().status());
  EXPECT_THAT(text, HasSubstr("exit code 3"));
  EXPECT_THAT(text, ::testing::EndsWith("\nthe reason"));
  EXPECT_LT(text.size(), 1300u);
}

TEST_F(ExecutorPoolTest, TakesOutOfTheOutputWhatIsNoUtf8) {
  use_script("printf 'caf\\351 \\033[1m\\344\\275\\n'; exit 3");
  start();
  EXPECT_THAT(MessageOf(take().status()), ::testing::EndsWith("\ncaf? ?[1m??"));
}

TEST_F(ExecutorPoolTest, LosesNothingWhereItCutsALine) {
  use_script("printf '%02000dbc\\n' 7; exit 3");
  start();
  EXPECT_THAT(MessageOf(take().status()), ::testing::EndsWith("\nbc"));
}

TEST_F(ExecutorPoolTest, GivesTheErrorOfAVendorThatDoesNotStart) {
  config_.vendor_dir = "/no/such/folder";
  start();
  const auto taken = take();
  EXPECT_FALSE(taken.ok());
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("/no/such/folder"));
}

TEST_F(ExecutorPoolTest, SaysWhereThereIsNoProgram) {
  config_.executor = "/no/such/program";
  start();
  const auto taken = take();
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("cannot start the executor /no/such/program: No such file"));
}

TEST_F(ExecutorPoolTest, AnExecutorThatCannotBeWatchedLeavesNoZombie) {
  const pid_t child = ::fork();  // which has no other children
  if (child == 0) {
    config_.executor = "/bin/true";
    // The lowest free numbers: room for the channel's two ends and the pipe's, and none for the pidfd.
    std::vector<UniqueFd> room;
    for (int i = 0; i < 4; ++i) room.emplace_back(::open("/dev/null", O_RDONLY));
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(room.back().get()) + 1;
    room.clear();
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(3);
    const auto spawned = ForkSpawner().spawn(ExecutorSpec::From(config_, {}), "e1");
    const bool refused = !spawned.ok() && MessageOf(spawned.status()).find("cannot watch") != std::string::npos;
    ::_exit(!refused ? 2 : ::waitpid(-1, nullptr, 0) == -1 && errno == ECHILD ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ExecutorPoolTest, BacksOffWhileStartsFailAndAnswersAtOnceMeanwhile) {
  use_script("echo started >> $0.count; exit 1");
  start();
  pool_->keep({});
  ASSERT_TRUE(run_until([&] { return failed_ == 1; }));
  const auto start_time = Clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(take().ok());
  EXPECT_LT(Clock::now() - start_time, 400ms);
  EXPECT_EQ(failed_, 1) << "within the first half second nothing is tried again";
  EXPECT_TRUE(run_until([&] { return failed_ == 2; }, 2s));
  EXPECT_FALSE(run_until([&] { return failed_ == 3; }, 700ms)) << "the second pause is longer";
}

TEST_F(ExecutorPoolTest, RecoversOnceStartsWorkAgain) {
  use_script("exit 1");
  start();
  pool_->keep({});
  ASSERT_TRUE(run_until([&] { return failed_ == 1; }));
  config_.executor = testing::BuildFolder() + "/bin/flagos-executor";
  EXPECT_TRUE(run_until([&] { return pool_->warm(0) == 1; }, 5s));
  EXPECT_TRUE(take().ok());
}

TEST_F(ExecutorPoolTest, KillsAnExecutorThatIsNeverReady) {
  config_.pool.start_timeout = 100ms;
  use_script("echo hanging; sleep 60");
  start();
  const auto taken = take();
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("not ready within 100ms"));
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("hanging"));
}

TEST_F(ExecutorPoolTest, KillsAnExecutorThatDoesNotSpeakTheChannelsProtocol) {
  use_script("head -c 512 /dev/zero | tr '\\0' 'x' >&3; sleep 60");
  start();
  const auto taken = take();
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("killed by signal 9"));
}

TEST_F(ExecutorPoolTest, AnEndedTicketTakesNothing) {
  config_.pool.warm = 0;
  start();
  bool called = false;
  {
    const auto ticket = pool_->take({}, [&](Taken) { called = true; });
  }
  EXPECT_FALSE(run_until([&] { return called; }, 200ms));
}

TEST_F(ExecutorPoolTest, StopsWhatItHoldsAndAnswersWhoWaits) {
  start();
  pool_->keep({});
  ASSERT_TRUE(run_until([&] { return pool_->warm(0) == 1; }));
  bool idle = false;
  pool_->stop([&] { idle = true; });
  EXPECT_TRUE(run_until([&] { return idle; }));
  EXPECT_EQ(pool_->warm(0), 0u);
  EXPECT_TRUE(absl::IsUnavailable(take().status()));
}

}  // namespace
}  // namespace flagos::daemon
