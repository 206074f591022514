// SPDX-License-Identifier: Apache-2.0
// The arbiter's arithmetic under a clock of the test's own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "proto/shm/arbiter.h"
#include "tests/unit/proto_child.h"

namespace flagos {
namespace {

constexpr uint64_t kMs = 1'000'000;

class ArbiterTest : public ::testing::Test {
 protected:
  void SetUp() override { made_ = std::move(CreateArbiterPage().value()); }
  ArbiterPage& page() { return *reinterpret_cast<ArbiterPage*>(made_.mapping.data()); }

  // An executor under lease entry `lease`, on device 0 (and others).
  ArbiterMember& join(uint32_t lease, const ShareTerms& terms, std::vector<uint32_t> devices = {0}) {
    Arbiter(page()).set_terms(lease, terms);
    members_.push_back(std::move(
        ArbiterMember::Join(UniqueFd(::dup(made_.fd.get())), ++sessions_, lease, std::move(devices)).value()));
    return *members_.back();
  }
  static ShareTerms Weight(uint32_t weight) { return {.weight = weight}; }
  static ShareTerms Of(ShareClass share_class) { return {.share_class = share_class}; }

  void want(ArbiterMember& member, uint32_t device = 0) {
    member.arbiter().wake(member.lease(), device);
    member.slot().heartbeat = now_;
    member.slot().waits_for = device + 1;
  }
  // Members that always want the device compute by turns, in kernels of `kernel`, until `end`; what each slot had.
  std::map<uint32_t, uint64_t> run(const std::vector<ArbiterMember*>& busy, uint64_t end, uint64_t kernel = kMs / 4) {
    std::map<uint32_t, uint64_t> had;
    const Arbiter& arbiter = busy.front()->arbiter();
    for (ArbiterMember* member : busy) want(*member);
    while (now_ < end) {
      for (ArbiterMember* member : busy) member->slot().heartbeat = now_;
      const int to = arbiter.pass(0, arbiter.turn(0), now_);
      if (to < 0) {
        now_ += kMs / 10;  // all have had their maximum
        continue;
      }
      ArbiterMember& holder = *members_.at(static_cast<size_t>(to));
      holder.slot().waits_for = 0;
      const uint64_t taken = now_;
      while (now_ - taken < kQuantum) {
        now_ += kernel;
        had[holder.slot_number()] += kernel;
        arbiter.charge(holder.lease(), 0, kernel, now_);
      }
      holder.slot().heartbeat = now_;
      holder.slot().waits_for = 1;
    }
    return had;
  }

  NewArbiterPage made_;
  std::vector<std::unique_ptr<ArbiterMember>> members_;
  uint64_t sessions_ = 0;
  uint64_t now_ = 1000 * kMs;
};

TEST_F(ArbiterTest, SharesAreAsTheWeightsWithinAHundredMilliseconds) {
  for (const auto& [first, second] : {std::pair{10u, 90u}, {25u, 75u}, {50u, 50u}, {1u, 99u}}) {
    const uint32_t entry = static_cast<uint32_t>(members_.size()) + 1;
    ArbiterMember& one = join(entry, Weight(first));
    ArbiterMember& two = join(entry + 1, Weight(second));
    now_ += 1000 * kMs;
    const uint64_t window = first == 1 ? 1000 * kMs : 100 * kMs;  // a hundredth needs a hundred turns
    for (int turn = 0; turn < 5; ++turn) {
      auto had = run({&one, &two}, now_ + window);
      const double share = static_cast<double>(had[one.slot_number()]) /
                           static_cast<double>(had[one.slot_number()] + had[two.slot_number()]);
      EXPECT_NEAR(share, first / 100.0, 0.02) << first << ":" << second << ", window " << turn;
    }
    one.slot().waits_for = 0;
    two.slot().waits_for = 0;
  }
}

TEST_F(ArbiterTest, LongKernelsAreChargedForWhatTheyTake) {
  ArbiterMember& one = join(1, Weight(50));
  ArbiterMember& two = join(2, Weight(50));
  uint64_t had_one = 0, had_two = 0;
  want(one), want(two);
  for (int i = 0; i < 400; ++i) {
    one.slot().heartbeat = two.slot().heartbeat = now_;
    const bool first = one.arbiter().pass(0, one.arbiter().turn(0), now_) == 0;
    const uint64_t took = first ? 7 * kMs : 2 * kMs;
    now_ += took;
    (first ? had_one : had_two) += took;
    one.arbiter().charge(first ? 1 : 2, 0, took, now_);
  }
  EXPECT_NEAR(static_cast<double>(had_one) / static_cast<double>(had_two), 1.0, 0.02);
}

TEST_F(ArbiterTest, SessionsOfOneLeaseHaveOneShare) {
  ArbiterMember& a = join(1, Weight(50));
  ArbiterMember& b = join(1, Weight(50));
  ArbiterMember& other = join(2, Weight(50));
  auto had = run({&a, &b, &other}, now_ + 1000 * kMs);
  const auto part = [&](ArbiterMember& m) { return static_cast<double>(had[m.slot_number()]) / (1000.0 * kMs); };
  EXPECT_NEAR(part(other), 0.5, 0.02);
  EXPECT_NEAR(part(a), 0.25, 0.02);
  EXPECT_NEAR(part(b), 0.25, 0.02);
}

TEST_F(ArbiterTest, AHigherClassGoesFirstWhateverTheWeights) {
  ArbiterMember& batch = join(1, {.weight = 10'000, .share_class = ShareClass::kBatch});
  ArbiterMember& normal = join(2, {.weight = 5});
  ArbiterMember& real_time = join(3, {.weight = 1, .share_class = ShareClass::kRealTime});
  want(batch), want(normal);
  EXPECT_EQ(batch.arbiter().next(0, now_), static_cast<int>(normal.slot_number()));
  want(real_time);
  EXPECT_EQ(batch.arbiter().next(0, now_), static_cast<int>(real_time.slot_number()));
  auto had = run({&batch, &real_time}, now_ + 50 * kMs);
  EXPECT_EQ(had[batch.slot_number()], 0u);
}

TEST_F(ArbiterTest, AMaximumHoldsInStrictModeAlone) {
  ArbiterMember& capped = join(1, {.max_percent = 40});
  const uint64_t start = now_;
  auto had = run({&capped}, now_ + 1000 * kMs);
  EXPECT_NEAR(static_cast<double>(had[0]) / static_cast<double>(now_ - start), 0.4, 0.02);
  page().mode = static_cast<uint32_t>(ComputeMode::kWorkConserving);
  had = run({&capped}, now_ + 500 * kMs);
  EXPECT_NEAR(static_cast<double>(had[0]) / (500.0 * kMs), 1.0, 0.01);
  // While another one wants the device, it holds in either mode.
  ArbiterMember& other = join(2, Weight(100));
  now_ += 10'000 * kMs;
  had = run({&capped, &other}, now_ + 1000 * kMs);
  EXPECT_NEAR(static_cast<double>(had[0]) / (1000.0 * kMs), 0.4, 0.02);
}

TEST_F(ArbiterTest, WhoWasAwayDoesNotGetWhatItMissed) {
  ArbiterMember& here = join(1, Weight(50));
  ArbiterMember& away = join(2, Weight(50));
  run({&here}, now_ + 5000 * kMs);
  auto had = run({&here, &away}, now_ + 100 * kMs);
  EXPECT_LE(had[away.slot_number()], 50 * kMs + kCatchUp);
  had = run({&here, &away}, now_ + 100 * kMs);
  EXPECT_NEAR(static_cast<double>(had[away.slot_number()]) / (100.0 * kMs), 0.5, 0.03);
}

TEST_F(ArbiterTest, ATurnIsTakenFromWhoIsNotThere) {
  ArbiterMember& holder = join(1, Weight(50));
  ArbiterMember& waiter = join(2, Weight(50));
  const Arbiter& arbiter = holder.arbiter();
  want(holder);
  ASSERT_EQ(arbiter.pass(0, arbiter.turn(0), now_), 0);
  holder.slot().waits_for = 0;
  want(waiter);
  EXPECT_FALSE(arbiter.may_be_taken(arbiter.turn(0), 0, now_ + kLapse - 1));
  EXPECT_TRUE(arbiter.may_be_taken(arbiter.turn(0), 0, now_ + kLapse)) << "stopped, or killed";
  holder.slot().heartbeat = now_ + kLapse;
  EXPECT_FALSE(arbiter.may_be_taken(arbiter.turn(0), 0, now_ + kLapse + kMs)) << "it moves";
  // It has nothing to do: not at once, for it may go on.
  now_ += kMs;
  holder.slot().idle_since = now_;
  waiter.slot().heartbeat = now_;
  EXPECT_FALSE(arbiter.may_be_taken(arbiter.turn(0), 0, now_ + kLinger - 1));
  EXPECT_TRUE(arbiter.may_be_taken(arbiter.turn(0), 0, now_ + kLinger));
  // ... but at once after its quantum, where the other is to go first.
  arbiter.charge(1, 0, 3 * kMs, now_);
  EXPECT_TRUE(arbiter.may_be_taken(arbiter.turn(0), 0, now_ + kQuantum));
}

TEST_F(ArbiterTest, AWaiterThatDoesNotMoveGetsNoTurn) {
  ArbiterMember& stopped = join(1, Weight(90));
  ArbiterMember& waiter = join(2, Weight(10));
  want(stopped);
  now_ += kLapse;
  EXPECT_EQ(stopped.arbiter().next(0, now_), -1);
  want(waiter);
  EXPECT_EQ(stopped.arbiter().next(0, now_), static_cast<int>(waiter.slot_number()));
}

TEST_F(ArbiterTest, NothingIsArbitratedWhereAllAreAsUsual) {
  ArbiterMember& usual = join(1, ShareTerms(), {0, 1});
  EXPECT_EQ(usual.arbiter().turn(0), 0u);
  {
    ArbiterMember& other = join(2, Weight(50), {1});
    EXPECT_EQ(usual.arbiter().turn(0), 0u);
    EXPECT_EQ(usual.arbiter().turn(1), kTurnArbitrated);
    want(other, 1);
    EXPECT_EQ(usual.arbiter().pass(1, kTurnArbitrated, now_), static_cast<int>(other.slot_number()));
    members_.pop_back();
  }
  EXPECT_EQ(usual.arbiter().turn(1), 0u) << "it left with its turn";
}

TEST_F(ArbiterTest, AKilledExecutorLeavesNothing) {
  const int fd = made_.fd.get();
  Arbiter(page()).set_terms(1, Weight(50));
  testing::Child child([fd] {
    const auto member = ArbiterMember::Join(UniqueFd(fd), 9, 1, {0});
    if (!member.ok()) return 1;
    member.value()->slot().waits_for.store(1);
    member.value()->slot().heartbeat.store(1);
    if (member.value()->arbiter().pass(0, kTurnArbitrated, 1) != 0) return 2;
    ::raise(SIGKILL);
    return 3;
  });
  EXPECT_EQ(child.wait(), -SIGKILL);
  EXPECT_NE(page().devices[0].turn.load(), 0u);
  ReapArbiterSlots(page(), fd);
  EXPECT_EQ(page().devices[0].turn.load(), 0u);
  ArbiterMember& next = join(1, Weight(50));
  EXPECT_EQ(next.slot_number(), 0u);
  EXPECT_EQ(page().slots_used.load(), 1u);
}

TEST_F(ArbiterTest, ADamagedPageCostsFairnessOnly) {
  ArbiterMember& member = join(1, Weight(50));
  page().leases[1].weight = 0;
  page().leases[1].max_percent = 0;
  page().leases[1].share_class = 77;
  page().slots_used = UINT32_MAX;
  page().slots[5].waits_for = 1;
  page().slots[5].heartbeat = now_;
  page().slots[5].lease = UINT32_MAX;
  page().mode = 9;
  want(member);
  EXPECT_EQ(member.arbiter().terms(1).weight, 1u);
  member.arbiter().charge(1, 0, UINT64_MAX, now_);
  EXPECT_LE(member.arbiter().over_maximum(1, 0, now_), 100 * kMostCharged);
  EXPECT_GE(member.arbiter().next(0, now_), 0);
  page().devices[0].turn = ~uint64_t{0};
  EXPECT_TRUE(member.arbiter().may_be_taken(member.arbiter().turn(0), 0, now_ + 1000 * kMs));
}

TEST_F(ArbiterTest, WhatIsNoPageOfThisVersionIsRefused) {
  page().version = kArbiterVersion + 1;
  EXPECT_EQ(MapArbiterPage(made_.fd.get()).error().code, ErrorCode::kMalformed);
  page().version = kArbiterVersion;
  const auto fd = [&] { return UniqueFd(::dup(made_.fd.get())); };
  EXPECT_EQ(ArbiterMember::Join(fd(), 1, kArbiterLeases, {0}).error().code, ErrorCode::kValue);
  EXPECT_EQ(ArbiterMember::Join(fd(), 1, 0, {kMaxDevices}).error().code, ErrorCode::kValue);
  EXPECT_EQ(ArbiterMember::Join(fd(), 1, 0, {}).error().code, ErrorCode::kValue);
  EXPECT_TRUE(ArbiterMember::Join(fd(), 1, 0, {0}).ok());
}

}  // namespace
}  // namespace flagos
