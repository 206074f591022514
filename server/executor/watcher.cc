// SPDX-License-Identifier: Apache-2.0
#include "server/executor/watcher.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "proto/shm/futex.h"
#include "server/common/log.h"
#include "server/common/strings.h"

namespace flagos::executor {
namespace {

// How long a session may take to end once nobody is left who would kill it.
constexpr uint64_t kAbandonedGrace = 5'000'000'000;  // nanoseconds
constexpr int kTick = 1000;                          // milliseconds
constexpr uint64_t kKnockEvery = 200'000'000;        // nanoseconds between two attempts to find a new flagosd

enum Entry { kStop, kLiveness, kClient, kChannel, kSignals, kEntries };

}  // namespace

Watcher::Watcher(const Watched& watched, Reactions reactions)
    : watched_(watched),
      reactions_(std::move(reactions)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { watch(); }) {
  ::pthread_setname_np(thread_.native_handle(), "flagos-watch");
}

Watcher::~Watcher() {
  const uint64_t one = 1;
  // An eventfd takes one more at any time.
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void Watcher::watch() {
  std::array<pollfd, kEntries> entries{};
  entries[kStop] = {stop_.get(), POLLIN, 0};
  entries[kLiveness] = {watched_.liveness, POLLRDHUP, 0};
  entries[kClient] = {watched_.client, POLLIN, 0};
  entries[kChannel] = {watched_.channel->fd(), POLLIN, 0};
  entries[kSignals] = {watched_.signals, POLLIN, 0};
  uint64_t deadline = 0;
  for (;;) {
    int timeout = kTick;
    if (abandoned_) {
      const uint64_t now = MonotonicNanoseconds();
      if (deadline == 0) deadline = now + kAbandonedGrace;
      if (now >= deadline) return reactions_.end_now("flagosd has gone and the running call did not end in time");
      timeout = std::min(kTick, static_cast<int>((deadline - now) / 1'000'000 + 1));
    }
    if (seeks_ && !joining_) {
      const uint64_t now = MonotonicNanoseconds();
      if (now >= next_knock_) knock(now);
      if (!joining_) timeout = std::min(timeout, static_cast<int>((next_knock_ - now) / 1'000'000 + 1));
    }
    entries[kChannel].fd = daemon_fd();
    const int ready = ::poll(entries.data(), entries.size(), timeout);
    if (ready == 0) reactions_.tick();
    if (ready < 0 && errno != EINTR) {
      log::Error("watching failed", {{"errno", errno}});
      return reactions_.end_now("the executor cannot watch its client any more");
    }
    if (entries[kStop].revents != 0) return;
    if (entries[kClient].revents != 0) return reactions_.end_now("the client process has ended");
    if (entries[kLiveness].revents != 0) return reactions_.end_now("the client has closed its session");
    if (entries[kChannel].revents != 0) joining_ ? hear_answer() : hear_daemon();
    if (entries[kSignals].revents != 0) {
      signalfd_siginfo signal{};
      if (::read(watched_.signals, &signal, sizeof signal) == sizeof signal) {
        reactions_.end_soon(Cat("the executor was told to end by signal ", signal.ssi_signo));
      }
    }
    for (pollfd& entry : entries) entry.revents = 0;
  }
}

int Watcher::daemon_fd() const {
  if (joining_) return joining_.get();
  return connected_ ? watched_.channel->fd() : -1;
}

void Watcher::hear_daemon() {
  auto message = watched_.channel->receive();
  if (message.ok() && message->kind == ChannelKind::kEnd) {
    return reactions_.end_soon(message->reason.empty() ? "flagosd ended the session" : message->reason);
  }
  connected_ = false;
  const bool gone = message.status().code() == absl::StatusCode::kUnavailable;
  const std::string why = message.ok() ? "flagosd assigned a second session" : MessageOf(message.status());
  if (watched_.end_with_daemon) {
    abandoned_ = true;
    return reactions_.end_soon("flagosd, with which this session ends, is gone");
  }
  log::Warn(gone ? "flagosd is gone; the session goes on" : "the channel to flagosd is broken; the session goes on",
            {{"why", why}});
  seeks_ = watched_.rejoiner != nullptr && watched_.rejoiner->possible();
  next_knock_ = MonotonicNanoseconds() + kKnockEvery;
}

void Watcher::knock(uint64_t now) {
  joining_ = watched_.rejoiner->knock();
  next_knock_ = now + kKnockEvery;
}

void Watcher::hear_answer() {
  const absl::Status answer = Rejoiner::TakeAnswer(joining_.get());
  if (absl::IsUnavailable(answer)) return joining_.reset();
  seeks_ = false;
  if (!answer.ok()) {
    log::Warn("the new flagosd does not take the session; it goes on without", {{"why", MessageOf(answer)}});
    return joining_.reset();
  }
  watched_.channel->replace(std::move(joining_));
  connected_ = true;
  log::Info("a new flagosd has the session");
}

}  // namespace flagos::executor
