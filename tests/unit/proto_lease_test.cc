// SPDX-License-Identifier: Apache-2.0
// The memory ledger of a lease: several processes, one page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <random>
#include <thread>

#include "proto/shm/lease_memory.h"
#include "tests/unit/proto_child.h"

namespace flagos {
namespace {

using testing::Child;

class LeasePageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = CreateLeasePage();
    ASSERT_TRUE(made.ok()) << made.error().message;
    page_ = std::move(made).value();
    // For what the processes of a test tell each other.
    void* const words = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    words_ = new (words) std::array<std::atomic<uint64_t>, 16>();
  }
  LeasePage& page() { return LeasePageOf(page_.mapping); }
  std::unique_ptr<LeaseAccount> join(uint64_t session, std::vector<uint32_t> devices = {0}) {
    auto joined = LeaseAccount::Join(UniqueFd(::dup(page_.fd.get())), session, std::move(devices));
    return joined.ok() ? std::move(joined).value() : nullptr;
  }
  // The mapping is not inherited by a child; the descriptor is.
  static std::unique_ptr<LeaseAccount> JoinIn(int fd, uint64_t session) {
    auto joined = LeaseAccount::Join(UniqueFd(fd), session, {0});
    return joined.ok() ? std::move(joined).value() : nullptr;
  }
  static void Await(const std::atomic<uint64_t>& word, uint64_t value) {
    while (word.load() != value) std::this_thread::yield();
  }

  NewLeasePage page_;
  std::array<std::atomic<uint64_t>, 16>* words_ = nullptr;
};

TEST_F(LeasePageTest, ChargesUpToTheQuotaAndNotAByteMore) {
  page().quota[3].store(1000);
  const auto account = join(1, {3, 5});
  EXPECT_TRUE(account->charge(0, 999));
  EXPECT_FALSE(account->charge(0, 2));
  EXPECT_TRUE(account->charge(0, 1));
  EXPECT_FALSE(account->charge(0, 1));
  EXPECT_FALSE(account->charge(0, UINT64_MAX));
  EXPECT_TRUE(account->charge(1, 5000)) << "the other device has no limit";
  account->uncharge(0, 400);
  EXPECT_EQ(account->charged(0), 600u);
  EXPECT_TRUE(account->charge(0, 400));
  const LeaseMemory memory = ReadLeaseMemory(page(), 3);
  EXPECT_EQ(memory.quota, 1000u);
  EXPECT_EQ(memory.used, 1000u);
  EXPECT_EQ(memory.largest_session, 1u);
  EXPECT_EQ(ReadLeaseCharge(page(), 1, 5), 5000u);
  EXPECT_EQ(Describe(memory),
            "its lease holds 1000 bytes of its quota of 1000 bytes there, session s1 most of it: 1000 bytes");
}

TEST_F(LeasePageTest, AClaimOfTheRestIsSettledForWhatWasTaken) {
  page().quota[0].store(1000);
  const auto account = join(1);
  ASSERT_TRUE(account->charge(0, 100));
  EXPECT_EQ(account->claim_rest(0), 1000u);
  account->settle(0, 350);
  EXPECT_EQ(account->charged(0), 350u);
  EXPECT_TRUE(account->charge(0, 650));
  EXPECT_EQ(account->claim_rest(0), 1000u);
  account->settle(0, 0);
  page().quota[0].store(0);
  EXPECT_EQ(account->claim_rest(0), UINT64_MAX);
}

TEST_F(LeasePageTest, SessionsOfOneProcessEachHaveASlot) {
  page().quota[0].store(10);
  const auto first = join(1), second = join(2);
  EXPECT_TRUE(first->charge(0, 6));
  EXPECT_FALSE(second->charge(0, 6));
  EXPECT_TRUE(second->charge(0, 4));
  EXPECT_EQ(ReadLeaseMemory(page(), 0).largest_session, 1u);
}

TEST_F(LeasePageTest, WhatAKilledProcessHeldIsTheLeasesAgain) {
  page().quota[0].store(1000);
  const int fd = page_.fd.get();
  {
    Child holder([fd, this] {
      const auto account = JoinIn(fd, 1);
      if (account == nullptr || !account->charge(0, 900)) return 1;
      words_->at(0).store(1);
      for (;;) ::pause();
    });
    Await(words_->at(0), 1);
    const auto account = join(2);
    EXPECT_FALSE(account->charge(0, 101)) << "it lives";
    EXPECT_FALSE(ReapLeaseSlots(page(), fd));
    EXPECT_TRUE(account->charge(0, 100));
    ::kill(holder.pid(), SIGKILL);
    EXPECT_EQ(holder.wait(), -SIGKILL);
    EXPECT_TRUE(account->charge(0, 900)) << "nobody but who needs it looked for it";
    EXPECT_EQ(ReadLeaseMemory(page(), 0).used, 1000u);
    EXPECT_EQ(ReadLeaseCharge(page(), 1, 0), 0u);
  }
}

TEST_F(LeasePageTest, AClaimThatAKilledProcessLeftIsNobodys) {
  page().quota[0].store(1000);
  const int fd = page_.fd.get();
  Child holder([fd] {
    const auto account = JoinIn(fd, 1);
    if (account == nullptr || account->claim_rest(0) != 1000) return 1;
    ::raise(SIGKILL);
    return 1;
  });
  EXPECT_EQ(holder.wait(), -SIGKILL);
  const auto account = join(2);
  EXPECT_TRUE(account->charge(0, 1000));
}

TEST_F(LeasePageTest, ASlotThatWasUsedIsUsedAgain) {
  const int fd = page_.fd.get();
  for (int turn = 0; turn < 3; ++turn) {
    Child holder([fd] {
      const auto account = JoinIn(fd, 1);
      if (account == nullptr || !account->charge(0, 5)) return 1;
      ::raise(SIGKILL);
      return 1;
    });
    EXPECT_EQ(holder.wait(), -SIGKILL);
  }
  EXPECT_EQ(page().slots_used.load(), 1u);
  EXPECT_EQ(ReadLeaseMemory(page(), 0).used, 5u);
}

// Each process adds to a word of the test's what it takes, after it was granted, and subtracts before it gives back:
// the word is never beyond the quota where the ledger is right, whatever the ledger itself says.
TEST_F(LeasePageTest, ProcessesTogetherNeverHoldMoreThanTheQuota) {
  constexpr uint64_t kQuota = 1000;
  constexpr int kProcesses = 3, kTurns = 20000;
  page().quota[0].store(kQuota);
  const int fd = page_.fd.get();
  const auto work = [fd, this](uint64_t session) {
    const auto account = JoinIn(fd, session);
    if (account == nullptr) return 1;
    std::mt19937_64 random(session);
    std::vector<uint64_t> held;
    for (int turn = 0; turn < kTurns; ++turn) {
      const uint64_t bytes = 1 + random() % 400;
      if (random() % 2 == 0 && account->charge(0, bytes)) {
        held.push_back(bytes);
        if (words_->at(0).fetch_add(bytes) + bytes > kQuota) return 2;
      } else if (!held.empty()) {
        words_->at(0).fetch_sub(held.back());
        account->uncharge(0, held.back());
        held.pop_back();
      }
    }
    for (const uint64_t bytes : held) words_->at(0).fetch_sub(bytes);
    words_->at(1).fetch_add(1);
    return 0;
  };
  {
    Child first([&] { return work(1); }), second([&] { return work(2); }), third([&] { return work(3); });
    EXPECT_EQ(first.wait(), 0);
    EXPECT_EQ(second.wait(), 0);
    EXPECT_EQ(third.wait(), 0);
  }
  EXPECT_EQ(words_->at(1).load(), static_cast<uint64_t>(kProcesses));
  EXPECT_EQ(ReadLeaseMemory(page(), 0).used, 0u);
}

TEST_F(LeasePageTest, OnlyOneOfTwoWhoWantTheLastRoomFailsAndOneGetsIt) {
  page().quota[0].store(100);
  const int fd = page_.fd.get();
  const auto work = [fd, this](uint64_t session) {
    const auto account = JoinIn(fd, session);
    if (account == nullptr) return 100;
    int won = 0;
    for (uint64_t turn = 1; turn <= 300; ++turn) {
      words_->at(session).store(turn);
      Await(words_->at(3 - session), turn);
      const bool charged = account->charge(0, 80);
      won += charged ? 1 : 0;
      words_->at(session + 4).store(turn);
      Await(words_->at(3 - session + 4), turn);
      if (charged) account->uncharge(0, 80);
      words_->at(session + 8).store(turn);
      Await(words_->at(3 - session + 8), turn);
    }
    words_->at(0).fetch_add(static_cast<uint64_t>(won));
    return 0;
  };
  Child first([&] { return work(1); }), second([&] { return work(2); });
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(words_->at(0).load(), 300u) << "one each turn";
}

TEST_F(LeasePageTest, WhatIsNoPageOfThisVersionIsRefused) {
  const auto refused = [](int fd) { return MapLeasePage(fd).error().code; };
  page().version.store(kLeaseVersion + 1);
  EXPECT_EQ(refused(page_.fd.get()), ErrorCode::kMalformed);
  page().version.store(kLeaseVersion);
  page().slot_count.store(1u << 30);
  EXPECT_EQ(refused(page_.fd.get()), ErrorCode::kMalformed);
  const auto small = CreateRegion("flagos-test", 4096);
  EXPECT_EQ(refused(small.value().get()), ErrorCode::kMalformed);
  const UniqueFd unsealed(::memfd_create("flagos-test", MFD_CLOEXEC));
  EXPECT_EQ(refused(unsealed.get()), ErrorCode::kMalformed);
  EXPECT_EQ(LeaseAccount::Join(UniqueFd(::dup(unsealed.get())), 1, {0}).error().code, ErrorCode::kMalformed);
  page().slot_count.store(kLeaseSlots);
  EXPECT_EQ(LeaseAccount::Join(UniqueFd(::dup(page_.fd.get())), 1, {kMaxDevices}).error().code, ErrorCode::kValue);
}

TEST_F(LeasePageTest, AHostilePageDoesNotOverflow) {
  page().quota[0].store(1000);
  const auto account = join(1);
  page().slots_used.store(UINT32_MAX);
  page().slots[7].devices[0].charged.store(UINT64_MAX);
  page().slots[8].devices[0].charged.store(UINT64_MAX);
  EXPECT_FALSE(account->charge(0, 1));
  EXPECT_EQ(ReadLeaseMemory(page(), 0).used, UINT64_MAX);
}

}  // namespace
}  // namespace flagos
