// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "server/daemon/sessions/lease.h"

namespace flagos::daemon {
namespace {

using namespace std::chrono_literals;

class LeaseTest : public ::testing::Test {
 protected:
  LeaseTest() : loop_(*EventLoop::Create()), table_(*loop_) {
    table_.on_end([this](const Lease& lease) { ended_.push_back(lease.id); });
  }
  void run_for(Clock::duration time) {
    const Watch end = loop_->after(time, [this] { loop_->stop(); });
    loop_->run();
  }

  std::unique_ptr<EventLoop> loop_;
  LeaseTable table_;
  std::vector<std::string> ended_;
};

TEST_F(LeaseTest, ATokenIsItsUsersAlone) {
  Lease* const lease = *table_.open("job", 1000, {}, 1h);
  EXPECT_EQ(*table_.find(lease->token, 1000), lease);
  EXPECT_EQ(*table_.find(lease->token, 0), lease);
  EXPECT_TRUE(absl::IsPermissionDenied(table_.find(lease->token, 1001).status()));
  Token other = lease->token;
  other[31] ^= 1;
  EXPECT_TRUE(absl::IsPermissionDenied(table_.find(other, 1000).status()));
  EXPECT_NE((*table_.open("job", 1000, {}, 1h))->token, lease->token);
}

TEST_F(LeaseTest, NobodyFindsALeaseWithoutAToken) {
  ASSERT_TRUE(table_.open_own(1000).ok());
  EXPECT_FALSE(table_.find(kNoToken, 1000).ok());
}

TEST_F(LeaseTest, AnOwnLeaseEndsWithItsSession) {
  Lease& lease = **table_.open_own(1000);
  const std::string id = lease.id;
  table_.add_session(lease, 1);
  EXPECT_NE(table_.find(id), nullptr);
  table_.remove_session(id, 1);
  EXPECT_EQ(table_.find(id), nullptr);
}

TEST_F(LeaseTest, AnOpenedLeaseOutlivesItsSessionsUntilItsTimeHasPassed) {
  Lease* const lease = *table_.open("job", 1000, {}, 30ms);
  const std::string id = lease->id;
  const Token token = lease->token;
  table_.add_session(*lease, 1);
  table_.remove_session(id, 1);
  EXPECT_NE(table_.find(id), nullptr);
  table_.add_session(*lease, 2);
  run_for(60ms);
  ASSERT_NE(table_.find(id), nullptr) << "its session runs";
  EXPECT_FALSE(table_.find(token, 1000).ok()) << "but nobody else comes in";
  table_.remove_session(id, 2);
  EXPECT_EQ(table_.find(id), nullptr);
  EXPECT_EQ(ended_, std::vector<std::string>{id});
}

TEST_F(LeaseTest, AnUnusedLeaseEndsWithItsTime) {
  const std::string id = (*table_.open("job", 1000, {}, 10ms))->id;
  run_for(40ms);
  EXPECT_EQ(table_.find(id), nullptr);
  EXPECT_EQ(ended_, std::vector<std::string>{id});
}

TEST(TokenTest, IsShownAsHex) {
  Token token{};
  token[0] = 0xab;
  token[31] = 0x01;
  EXPECT_EQ(ToHex(token), "ab" + std::string(60, '0') + "01");
}

}  // namespace
}  // namespace flagos::daemon
