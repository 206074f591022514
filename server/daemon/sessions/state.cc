// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/sessions/state.h"

#include <algorithm>
#include <array>

#include "server/common/log.h"

namespace flagos::daemon {
namespace {

using enum SessionState;

struct Step {
  SessionState from, to;
};
constexpr std::array kSteps = {
    Step{kPending, kAttaching},  Step{kPending, kDraining},  Step{kPending, kEnded},   Step{kAttaching, kRunning},
    Step{kAttaching, kDraining}, Step{kAttaching, kFaulted}, Step{kAttaching, kEnded}, Step{kRunning, kIdle},
    Step{kRunning, kDraining},   Step{kRunning, kFaulted},   Step{kRunning, kEnded},   Step{kIdle, kRunning},
    Step{kIdle, kDraining},      Step{kIdle, kFaulted},      Step{kIdle, kEnded},      Step{kDraining, kEnded},
};

}  // namespace

const char* StateName(SessionState state) {
  switch (state) {
    case kPending: return "PENDING";
    case kAttaching: return "ATTACHING";
    case kRunning: return "RUNNING";
    case kIdle: return "IDLE";
    case kDraining: return "DRAINING";
    case kFaulted: return "FAULTED";
    case kEnded: return "ENDED";
  }
  return "UNKNOWN";
}

bool MayFollow(SessionState from, SessionState to) {
  return std::any_of(kSteps.begin(), kSteps.end(),
                     [&](const Step& step) { return step.from == from && step.to == to; });
}

bool SessionStateMachine::advance(SessionState to) {
  if (!MayFollow(state_, to)) {
    log::Error("a session was asked for a step that its state does not allow; the state is kept",
               {{"session", session_}, {"state", StateName(state_)}, {"refused", StateName(to)}});
    return false;
  }
  log::Debug("session state", {{"session", session_}, {"from", StateName(state_)}, {"to", StateName(to)}});
  state_ = to;
  return true;
}

}  // namespace flagos::daemon
