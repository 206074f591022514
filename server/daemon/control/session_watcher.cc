// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/control/session_watcher.h"

#include <utility>

#include "server/daemon/control/view.h"

namespace flagos::daemon {

void SessionWatcher::start(Clock::duration interval) {
  if (finished_) return;
  registry_.emplace(this, uid_);
  for (const auto& [number, session] : supervisor_.sessions()) {
    if (session->state() != SessionState::kEnded) add(*session, v1::SessionEvent::KIND_PRESENT);
  }
  listener_ = supervisor_.add_listener([this](const Session& session, bool over) {
    add(session, over ? v1::SessionEvent::KIND_ENDED : v1::SessionEvent::KIND_CHANGED);
  });
  if (interval > Clock::duration::zero()) timer_ = loop_.after(interval, [this, interval] { refresh(interval); });
}

void SessionWatcher::add(const Session& session, v1::SessionEvent::Kind kind) {
  v1::SessionEvent& event = pending_[session.number()];
  const bool unseen = event.kind() == v1::SessionEvent::KIND_PRESENT && kind == v1::SessionEvent::KIND_CHANGED;
  event.set_kind(unseen ? v1::SessionEvent::KIND_PRESENT : kind);
  event.clear_session();
  Show(session, event.mutable_session());
  write_next();
}

void SessionWatcher::refresh(Clock::duration interval) {
  for (const auto& [number, session] : supervisor_.sessions()) {
    if (!session->over()) add(*session, v1::SessionEvent::KIND_CHANGED);
  }
  timer_ = loop_.after(interval, [this, interval] { refresh(interval); });
}

void SessionWatcher::write_next() {
  if (writing_ || finished_ || pending_.empty()) return;
  writing_ = true;
  current_ = std::move(pending_.begin()->second);
  pending_.erase(pending_.begin());
  StartWrite(&current_);
}

void SessionWatcher::finish(const grpc::Status& status) {
  if (std::exchange(finished_, true)) return;
  registry_.erase(this);
  supervisor_.remove_listener(listener_);
  timer_.cancel();
  pending_.clear();
  Finish(status);
}

void SessionWatcher::OnWriteDone(bool ok) {
  loop_.post([this, ok] {
    writing_ = false;
    if (ok) {
      write_next();
    } else {
      finish(grpc::Status::CANCELLED);
    }
  });
}

void SessionWatcher::OnCancel() {
  loop_.post([this] { finish(grpc::Status::CANCELLED); });
}

void SessionWatcher::OnDone() {
  // After every task above, because the loop runs tasks in order.
  loop_.post([this] { delete this; });
}

}  // namespace flagos::daemon
