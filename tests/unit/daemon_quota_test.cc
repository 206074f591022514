// SPDX-License-Identifier: Apache-2.0
// Limits of memory as they are written, and the pages of quotas and shares as flagosd holds them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/common/strings.h"
#include "server/daemon/sessions/lease_memory.h"
#include "server/daemon/sessions/share.h"

namespace flagos::daemon {
namespace {

using ::testing::HasSubstr;

DeviceRecord DeviceOf(uint64_t memory) {
  DeviceRecord record{};
  record.total_memory = memory;
  return record;
}

TEST(MemoryLimitTest, ReadsSizesPartsAndNone) {
  EXPECT_EQ(ParseMemoryLimit("4GiB")->of(100), 4ull << 30);
  EXPECT_EQ(ParseMemoryLimit("25%")->of(1000), 250u);
  EXPECT_EQ(ParseMemoryLimit("12.5%")->of(1000), 125u);
  EXPECT_EQ(ParseMemoryLimit("0.01%")->of(10), 1u) << "not what stands for no limit";
  EXPECT_EQ(ParseMemoryLimit("none")->of(1000), 0u);
  for (const char* text : {"4GiB", "25%", "12.5%", "none"}) EXPECT_EQ(FormatMemoryLimit(*ParseMemoryLimit(text)), text);
}

TEST(MemoryLimitTest, RefusesWhatIsNone) {
  for (const char* text : {"", "4", "0B", "0%", "100.1%", "-1%", "%", "nan%", "1e1%", "None", "25 percent"}) {
    EXPECT_THAT(MessageOf(ParseMemoryLimit(text).status()), HasSubstr("is no limit of memory")) << text;
  }
}

TEST(LeaseMemoryPageTest, LimitsDevicesAsTheyBecomeKnown) {
  const auto page = *LeaseMemoryPage::Create(*ParseMemoryLimit("50%"));
  page->limit({2, 0}, {DeviceOf(1000), DeviceOf(400)});
  EXPECT_EQ(page->quota(2), 500u);
  EXPECT_EQ(page->quota(0), 200u);
  EXPECT_EQ(page->quota(1), 0u);
  page->limit({1, 2}, {DeviceOf(10), DeviceOf(5000)});
  EXPECT_EQ(page->quota(1), 5u);
  EXPECT_EQ(page->quota(2), 500u) << "as at first";
  page->limit({kMaxDevices}, {DeviceOf(10)});
}

TEST(LeaseMemoryPageTest, ReadsWhatExecutorsSayAndKeepsItsOwnLimit) {
  const auto page = *LeaseMemoryPage::Create(*ParseMemoryLimit("1000B"));
  page->limit({0}, {DeviceOf(1 << 20)});
  const auto account = std::move(LeaseAccount::Join(UniqueFd(::dup(page->fd())), 12, {0}).value());
  ASSERT_TRUE(account->charge(0, 700));
  EXPECT_EQ(page->used(12, 0), 700u);
  EXPECT_EQ(page->used(13, 0), 0u);
  const auto other = MapLeasePage(page->fd());
  LeasePageOf(other.value()).quota[0].store(0);
  LeasePageOf(other.value()).slots[1].devices[0].charged.store(UINT64_MAX);
  LeasePageOf(other.value()).slots_used.store(2);
  const LeaseMemory memory = page->read(0);
  EXPECT_EQ(memory.quota, 1000u);
  EXPECT_EQ(memory.used, static_cast<uint64_t>(INT64_MAX));
  EXPECT_EQ(page->read(kMaxDevices).used, 0u);
}

TEST(LeaseMemoryPageTest, IsTakenOverFromAnExecutor) {
  const auto page = *LeaseMemoryPage::Create(*ParseMemoryLimit("1000B"));
  page->limit({3}, {DeviceOf(1 << 20)});
  // What an executor has written meanwhile does not count.
  const auto written = MapLeasePage(page->fd());
  ASSERT_TRUE(written.ok());
  LeasePageOf(written.value()).quota[3].store(1 << 30);
  const auto adopted = *LeaseMemoryPage::Adopt(UniqueFd(::dup(page->fd())), page->limit());
  adopted->limit({3}, {DeviceOf(1 << 20)});
  EXPECT_EQ(adopted->quota(3), 1000u);
  EXPECT_EQ(LeasePageOf(written.value()).quota[3].load(), 1000u);
  auto other = CreateRegion("flagos-test", sizeof(LeasePage));
  EXPECT_FALSE(LeaseMemoryPage::Adopt(std::move(other).value(), {}).ok());
}

TEST(SharePageTest, ALeaseHasAnEntryUntilItEnds) {
  const auto page = *SharePage::Create();
  const ShareTerms terms{.weight = 50, .max_percent = 40, .share_class = ShareClass::kBatch};
  auto lease = LeaseShare::Open(page, terms);
  EXPECT_NE(lease->entry(), 0u);
  EXPECT_EQ(page->arbiter().terms(lease->entry()), terms);
  const auto other = LeaseShare::Open(page, ShareTerms());
  EXPECT_NE(other->entry(), lease->entry());
  page->arbiter().charge(lease->entry(), 3, 100'000'000, 1'000'000'000);
  EXPECT_DOUBLE_EQ(lease->used({3, 4}), 0.1);
  const uint32_t entry = lease->entry();
  lease.reset();
  const auto next = LeaseShare::Open(page, ShareTerms());
  EXPECT_EQ(next->entry(), entry);
  EXPECT_EQ(next->used({3}), 0) << "the entry begins anew";
}

TEST(SharePageTest, WithoutRoomALeaseHasTheUsualShare) {
  const auto page = *SharePage::Create();
  std::vector<std::shared_ptr<LeaseShare>> all;
  for (uint32_t i = 1; i < kArbiterLeases; ++i) all.push_back(LeaseShare::Open(page, {.weight = 7}));
  EXPECT_NE(all.back()->entry(), 0u);
  const auto late = LeaseShare::Open(page, {.weight = 7});
  EXPECT_EQ(late->entry(), 0u);
  EXPECT_TRUE(late->terms().usual());
}

TEST(SharePageTest, IsTakenOverWithTheEntriesThatAreInUse) {
  const auto page = *SharePage::Create();
  const auto gone = LeaseShare::Open(page, {.weight = 7}), kept = LeaseShare::Open(page, {.weight = 50});
  const auto member = ArbiterMember::Join(UniqueFd(::dup(page->fd())), 12, kept->entry(), {0});
  ASSERT_TRUE(member.ok());
  member.value()->slot().throttled = 250'000'000;
  EXPECT_DOUBLE_EQ(kept->session(12).throttled, 0.25);
  const auto adopted = *SharePage::Adopt(UniqueFd(::dup(page->fd())));
  EXPECT_EQ(adopted->arbiter().page().leases[gone->entry()].taken.load(), 0u);
  EXPECT_EQ(adopted->arbiter().page().leases[kept->entry()].taken.load(), 1u);
  EXPECT_EQ(LeaseShare::Adopt(adopted, kept->entry())->terms(), kept->terms());
  EXPECT_EQ(LeaseShare::Adopt(adopted, UINT32_MAX)->entry(), 0u);
  auto other = CreateRegion("flagos-test", sizeof(ArbiterPage));
  EXPECT_FALSE(SharePage::Adopt(std::move(other).value()).ok());
}

}  // namespace
}  // namespace flagos::daemon
