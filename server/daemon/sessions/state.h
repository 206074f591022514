// SPDX-License-Identifier: Apache-2.0
// The life of a session, as control.proto names it:
//
//   PENDING ──▶ ATTACHING ──▶ RUNNING ◀──▶ IDLE
//      │            │            │          │
//      │            ├────────────┴──────────┤──▶ FAULTED   the executor was lost
//      │            └────────────┬──────────┘
//      │                         ▼
//      └──────────────────▶  DRAINING ──▶ ENDED
#pragma once

#include <string>

namespace flagos::daemon {

enum class SessionState {
  kPending = 1,  // the numbers of flagos.v1.SessionState
  kAttaching = 2,
  kRunning = 3,
  kIdle = 4,
  kDraining = 5,
  kFaulted = 6,
  kEnded = 7,
};

const char* StateName(SessionState state);

// Whether a session may go from one state to the other. A session that is FAULTED or ENDED stays so until it is
// forgotten.
bool MayFollow(SessionState from, SessionState to);

// Holds the state of one session and refuses a step that the picture does not have.
class SessionStateMachine {
 public:
  explicit SessionStateMachine(std::string session) : session_(std::move(session)) {}
  SessionState state() const { return state_; }
  // FAULTED or ENDED: nothing happens to the session any more.
  bool over() const { return state_ == SessionState::kFaulted || state_ == SessionState::kEnded; }
  // False, and a line in the log, where `to` may not follow; the state is unchanged then.
  bool advance(SessionState to);

 private:
  const std::string session_;
  SessionState state_ = SessionState::kPending;
};

}  // namespace flagos::daemon
