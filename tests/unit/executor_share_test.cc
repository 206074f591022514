// SPDX-License-Identifier: Apache-2.0
// A session's part in sharing a device: taking turns, giving way, bounding what is in flight.
#include "server/executor/share.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <thread>
#include <vector>

namespace flagos::executor {
namespace {

// A device whose work is done when the test says so, or at once.
class FakeDevice {
 public:
  Share::Fence fence() {
    return [this](uint8_t, std::function<void()> done) {
      {
        const std::lock_guard lock(mutex_);
        ++asked_;
        changed_.notify_all();
        if (!at_once_) return waiting_.push_back(std::move(done));
      }
      done();
    };
  }
  void hold() {
    const std::lock_guard lock(mutex_);
    at_once_ = false;
  }
  // Everything is done, and so is all that follows.
  void finish() {
    std::deque<std::function<void()>> done;
    {
      const std::lock_guard lock(mutex_);
      at_once_ = true;
      done.swap(waiting_);
    }
    for (const auto& one : done) one();
  }
  void await_asked(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_ >= count; });
  }
  size_t asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool at_once_ = true;
  size_t asked_ = 0;
  std::deque<std::function<void()>> waiting_;
};

class ShareTest : public ::testing::Test {
 protected:
  void SetUp() override { made_ = std::move(CreateArbiterPage().value()); }
  ArbiterPage& page() { return *reinterpret_cast<ArbiterPage*>(made_.mapping.data()); }
  uint64_t turn() { return page().devices[0].turn.load(); }
  std::unique_ptr<Share> join(uint32_t lease, const ShareTerms& terms, FakeDevice& device) {
    Arbiter(page()).set_terms(lease, terms);
    auto share = std::make_unique<Share>(
        std::move(ArbiterMember::Join(UniqueFd(::dup(made_.fd.get())), ++sessions_, lease, {0}).value()));
    share->use(device.fence());
    return share;
  }
  // Waits until a slot waits for the device.
  void await_waiter(uint32_t slot) {
    while (page().slots[slot].waits_for.load() == 0 || (turn() & kTurnContended) == 0) std::this_thread::yield();
  }

  NewArbiterPage made_;
  uint64_t sessions_ = 0;
  FakeDevice device_;
};

TEST_F(ShareTest, WithoutUnusualSharesNothingHappens) {
  const auto share = join(1, ShareTerms(), device_);
  for (int call = 0; call < 10'000; ++call) share->enter(0);
  share->idle();
  EXPECT_EQ(turn(), 0u);
  EXPECT_EQ(device_.asked(), 0u);
}

TEST_F(ShareTest, TakesTheTurnAndKeepsItWhileNobodyElseWantsIt) {
  const auto share = join(1, {.weight = 50}, device_);
  share->enter(0);
  EXPECT_EQ(turn(), kTurnArbitrated | 1);
  for (int call = 0; call < 10'000; ++call) share->enter(0);
  share->idle();
  EXPECT_EQ(turn(), kTurnArbitrated | 1);
  EXPECT_NE(page().slots[0].idle_since.load(), 0u);
  share->enter(0);
  EXPECT_EQ(page().slots[0].idle_since.load(), 0u);
}

TEST_F(ShareTest, AnIdleHolderLosesTheTurnToWhoWantsIt) {
  FakeDevice other_device;
  const auto share = join(1, {.weight = 50}, device_), other = join(2, {.weight = 50}, other_device);
  share->enter(0);
  share->idle();
  other->enter(0);
  EXPECT_EQ(turn() & kTurnHolder, 2u);
  other->idle();
  share->enter(0);
  EXPECT_EQ(turn() & kTurnHolder, 1u);
}

TEST_F(ShareTest, AHigherClassGetsTheTurnOnceWhatIsInFlightIsDone) {
  FakeDevice other_device;
  const auto batch = join(1, {.share_class = ShareClass::kBatch}, device_);
  const auto real_time = join(2, {.share_class = ShareClass::kRealTime}, other_device);
  batch->enter(0);
  device_.hold();
  std::atomic<bool> entered{false};
  std::thread waiter([&] {
    real_time->enter(0);
    EXPECT_TRUE(entered.load()) << "the batch session's work was not done";
    real_time->idle();
  });
  await_waiter(1);
  const size_t asked = device_.asked();
  std::thread holder([&] { batch->enter(0); });  // gives way, and comes again
  device_.await_asked(asked + 1);
  entered.store(true);
  device_.finish();
  waiter.join();
  holder.join();
  EXPECT_EQ(turn() & kTurnHolder, 1u);
}

TEST_F(ShareTest, AHolderThatIsStoppedLosesTheTurn) {
  FakeDevice other_device;
  const auto stopped = join(1, {.weight = 90}, device_), other = join(2, {.weight = 10}, other_device);
  stopped->enter(0);
  // It does nothing more, as after SIGSTOP.
  other->enter(0);
  EXPECT_EQ(turn() & kTurnHolder, 2u);
  EXPECT_GE(page().slots[1].throttled.load(), kLapse / 2);
}

TEST_F(ShareTest, WhatIsInFlightIsBounded) {
  const auto share = join(1, {.weight = 50}, device_);
  share->enter(0);
  device_.hold();
  std::atomic<uint64_t> calls{0};
  std::thread dispatch([&] {
    for (int call = 0; call < 1'000'000; ++call) {
      share->enter(0);
      calls.fetch_add(1);
    }
  });
  // Two looks' calls may be in flight; the third waits.
  device_.await_asked(3);
  const uint64_t in_flight = calls.load();
  EXPECT_LE(in_flight, 3u * 1024);
  device_.finish();
  dispatch.join();
  EXPECT_EQ(calls.load(), 1'000'000u);
}

TEST_F(ShareTest, TheEndOfTheSessionEndsTheWait) {
  FakeDevice other_device;
  const auto holder = join(1, {.max_percent = 1}, device_);
  holder->enter(0);
  page().leases[1].devices[0].not_before = ~uint64_t{0} / 2;
  std::thread dispatch([&] {
    for (int call = 0; call < 100'000; ++call) holder->enter(0);  // far beyond its maximum
  });
  while (page().slots[0].waits_for.load() == 0) std::this_thread::yield();
  holder->stop();
  dispatch.join();
}

TEST_F(ShareTest, ArbitrationBeginsAndEndsUnderARunningSession) {
  const auto usual = join(1, ShareTerms(), device_);
  usual->enter(0);
  {
    FakeDevice other_device;
    const auto other = join(2, {.weight = 50}, other_device);
    usual->enter(0);
    EXPECT_EQ(turn(), kTurnArbitrated | 1);
  }
  usual->enter(0);
  EXPECT_EQ(turn(), 0u);
}

}  // namespace
}  // namespace flagos::executor
