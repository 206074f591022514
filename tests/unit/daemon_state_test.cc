// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flagos/v1/control.pb.h"
#include "server/daemon/sessions/state.h"

namespace flagos::daemon {
namespace {

using enum SessionState;
const std::vector<SessionState> kAll = {kPending, kAttaching, kRunning, kIdle, kDraining, kFaulted, kEnded};

TEST(SessionStateTest, HasTheControlPlanesNamesAndNumbers) {
  for (const SessionState state : kAll) {
    EXPECT_EQ(v1::SessionState_Name(static_cast<v1::SessionState>(state)),
              std::string("SESSION_STATE_") + StateName(state));
  }
  EXPECT_EQ(kAll.size() + 1, static_cast<size_t>(v1::SessionState_ARRAYSIZE));
}

TEST(SessionStateTest, AllowsThePictureOnly) {
  const std::vector<std::string> picture = {
      // to: PENDING ATTACHING RUNNING IDLE DRAINING FAULTED ENDED
      "-a--d-e",  // PENDING
      "--r-dfe",  // ATTACHING
      "---idfe",  // RUNNING
      "--r-dfe",  // IDLE
      "------e",  // DRAINING
      "-------",  // FAULTED
      "-------",  // ENDED
  };
  for (size_t from = 0; from < kAll.size(); ++from) {
    for (size_t to = 0; to < kAll.size(); ++to) {
      EXPECT_EQ(MayFollow(kAll[from], kAll[to]), picture[from][to] != '-')
          << StateName(kAll[from]) << StateName(kAll[to]);
    }
  }
}

TEST(SessionStateTest, KeepsItsStateWhenAskedForAStepThatThereIsNot) {
  SessionStateMachine machine("s1");
  EXPECT_FALSE(machine.advance(kRunning));
  EXPECT_EQ(machine.state(), kPending);
  EXPECT_TRUE(machine.advance(kAttaching));
  EXPECT_TRUE(machine.advance(kRunning));
  EXPECT_TRUE(machine.advance(kIdle));
  EXPECT_TRUE(machine.advance(kRunning));
  EXPECT_FALSE(machine.over());
  EXPECT_TRUE(machine.advance(kFaulted));
  EXPECT_TRUE(machine.over());
  EXPECT_FALSE(machine.advance(kRunning));
  EXPECT_EQ(machine.state(), kFaulted);
}

}  // namespace
}  // namespace flagos::daemon
